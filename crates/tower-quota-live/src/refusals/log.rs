use core::hash::BuildHasher;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::hash::RandomState;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tower_quota::{Decided, Key, Name, TopClient};

use super::refusal::{Refusal, RefusalFilter, RefusalList, millis};
use crate::blocks::BlockSet;
use crate::time::Time;

/// The number of remembered refusals.
const KEPT: u64 = 10_000;
/// The maximum bytes of a remembered key. The ring has only the hashes of longer keys.
const LONGEST_KEY: usize = 128;
const LONGEST_ROUTE: usize = 128;

/// The refusals in a second of a client at a limit and a route with places of their own. Their request ids are found.
const SEPARATE: u32 = 4;
const SECOND: Duration = Duration::from_secs(1);
/// The number of buckets of marks. A power of two.
const BUCKETS: u64 = 4_096;
/// The marks in a bucket, so that clients with one bucket keep their own last places.
const MARKS: usize = 4;

/// A ring of the last refusals. Each place has its own lock, so threads rarely meet, and keeps its buffers, so a refusal
/// rarely allocates.
///
/// In a flood, further refusals of a client in the same second raise the count of the client's last place, so that the
/// ring keeps the refusals of others.
pub(crate) struct RefusalLog {
    places: Box<[Mutex<Place>]>,
    next: AtomicU64,
    start: Time,
    /// Hashes with a secret, so that clients cannot choose equal marks.
    hasher: RandomState,
    /// The numbers of the last places, by the mark of client, limit and route.
    last: Box<[[AtomicU64; MARKS]]>,
}

#[derive(Default)]
struct Place {
    at: Option<Time>,
    /// The hash of the outcome, the limit, the client, the route and the version.
    mark: u64,
    /// The first refusal of the mark in this second, and the number of places since.
    began: Option<Time>,
    rank: u32,
    count: u32,
    outcome: &'static str,
    limit: Option<Name>,
    client: Option<Client>,
    retry_after: Option<Duration>,
    version: Option<u64>,
    route: String,
    request_id: String,
    trace_id: String,
}

struct Client {
    scope: Name,
    hash: u64,
    /// The key, unless it is long.
    key: Option<Key<'static>>,
}

impl RefusalLog {
    pub(crate) fn new() -> Self {
        Self {
            places: (0..KEPT).map(|_| Mutex::default()).collect(),
            next: AtomicU64::new(0),
            start: Time::now(),
            hasher: RandomState::new(),
            last: (0..BUCKETS).map(|_| Default::default()).collect(),
        }
    }

    pub(crate) fn add(&self, decided: &Decided<'_>, blocks: &BlockSet) {
        let (outcome, version, now) = (decided.label(), decided.version, Time::now());
        let limit = decided.refused_client().map(|(limit, _)| limit);
        let key = decided.client();
        let route = decided.head.matched_route();
        let route = route.filter(|route| route.len() <= LONGEST_ROUTE);
        let mark = self.hasher.hash_one((outcome, limit, key, route, version));
        let Some(last) = self.last_of(mark) else {
            return;
        };
        let (mut began, mut rank) = (now, 1);
        if let Some(mut place) = self.place(last.load(Ordering::Relaxed))
            && place.mark == mark
            && let Some(first) = place.began
            && now.since(first) < SECOND
        {
            if place.rank >= SEPARATE {
                place.count += 1;
                place.set_request(decided, now);
                return;
            }
            (began, rank) = (first, place.rank + 1);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(mut place) = self.place(number) else {
            return;
        };
        (place.mark, place.began, place.rank) = (mark, Some(began), rank);
        place.count = 1;
        place.outcome = outcome;
        place.limit = limit;
        place.client = key.map(|key| Client::of(key, blocks));
        place.version = version;
        set(&mut place.route, route);
        place.set_request(decided, now);
        last.store(number, Ordering::Relaxed);
    }

    /// Returns the selected refusals, the newest first, at most `most`.
    pub(crate) fn list(&self, filter: &RefusalFilter, most: usize) -> RefusalList {
        let (end, clients) = (self.next.load(Ordering::Relaxed), filter.numbers());
        let mut list = RefusalList {
            refusals: Vec::new(),
            since: self.start,
        };
        for number in (end.saturating_sub(KEPT)..end).rev() {
            let Some(place) = self.place(number) else {
                continue;
            };
            // Another thread has this place, and has not written it yet.
            let Some(at) = place.at else {
                continue;
            };
            if end > KEPT {
                list.since = at;
            }
            if list.refusals.len() < most
                && filter.has_time(at)
                && place.is_of(filter, clients.as_deref())
            {
                list.refusals.push(place.read(at));
            }
        }
        list
    }

    /// Returns the number of the last place of a mark, or else the oldest number in the mark's bucket.
    fn last_of(&self, mark: u64) -> Option<&AtomicU64> {
        let bucket = self.last.get(position(mark % BUCKETS))?;
        let is_of_mark = |last: &&AtomicU64| {
            let place = self.place(last.load(Ordering::Relaxed));
            place.is_some_and(|place| place.mark == mark)
        };
        let oldest = || {
            bucket
                .iter()
                .min_by_key(|last| last.load(Ordering::Relaxed))
        };
        bucket.iter().find(is_of_mark).or_else(oldest)
    }

    fn place(&self, number: u64) -> Option<MutexGuard<'_, Place>> {
        let place = self.places.get(position(number % KEPT))?;
        // The fields are independent, so they are valid even if a thread panicked.
        Some(place.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns a position in a list, which is short.
fn position(number: u64) -> usize {
    usize::try_from(number).unwrap_or_default()
}

impl Client {
    fn of(key: &Key<'_>, blocks: &BlockSet) -> Self {
        let is_short = key.as_bytes().len() <= LONGEST_KEY;
        Self {
            scope: key.scope(),
            hash: blocks.hash(key),
            key: is_short.then(|| key.to_static()),
        }
    }
}

impl Place {
    /// Sets what differs between the refusals of a mark.
    fn set_request(&mut self, decided: &Decided<'_>, at: Time) {
        self.at = Some(at);
        self.retry_after = decided.retry_after();
        set(&mut self.request_id, decided.request_id());
        set(&mut self.trace_id, decided.trace_id());
    }

    fn is_of(&self, filter: &RefusalFilter, clients: Option<&[u64]>) -> bool {
        let (limit, client) = (self.limit.map(Name::as_str), self.client.as_ref());
        let scope = client.map(|client| client.scope.as_str());
        let (of_limit, of_scope) = (filter.limit.as_deref(), filter.scope.as_deref());
        of_limit.is_none_or(|asked| limit == Some(asked))
            && of_scope.is_none_or(|asked| scope == Some(asked))
            && filter.is_of_request(&self.request_id, &self.trace_id)
            && clients
                .is_none_or(|hashes| client.is_some_and(|client| hashes.contains(&client.hash)))
    }

    fn read(&self, at: Time) -> Refusal {
        let client = self.client.as_ref();
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Refusal {
            at,
            count: u64::from(self.count),
            outcome: self.outcome,
            limit: self.limit.map(Name::as_str),
            scope: client.map(|client| client.scope.as_str()),
            hash: client.map(|client| format!("{:016x}", client.hash)),
            key: client.and_then(|client| TopClient::text_of(client.key.as_ref()?)),
            route: given(&self.route),
            retry_after_ms: self.retry_after.map(millis),
            version: self.version,
            request_id: given(&self.request_id),
            trace_id: given(&self.trace_id),
        }
    }
}

/// Sets a text in the buffer of the text before.
fn set(buffer: &mut String, text: Option<&str>) {
    buffer.clear();
    buffer.push_str(text.unwrap_or_default());
}
