use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use tower_quota::{Decided, Key, Name, TopClient};

use super::refusal::{Refusal, RefusalFilter, RefusalList, millis};
use crate::blocks::BlockSet;
use crate::time::Time;

/// The number of remembered refusals.
const KEPT: u64 = 10_000;
/// The maximum bytes of a remembered key. The ring has only the hashes of longer keys.
const LONGEST_KEY: usize = 128;
const LONGEST_ROUTE: usize = 128;

/// A ring of the last refusals. Each place has its own lock, so threads rarely meet, and keeps its buffers, so a refusal
/// rarely allocates.
pub(crate) struct RefusalLog {
    places: Box<[Mutex<Place>]>,
    next: AtomicU64,
    start: Time,
}

#[derive(Default)]
struct Place {
    at: Option<Time>,
    outcome: &'static str,
    limit: Option<Name>,
    client: Option<Client>,
    retry_after: Option<Duration>,
    version: Option<u64>,
    route: String,
    request_id: String,
    trace_id: String,
}

enum Client {
    Known(Key<'static>),
    Hashed { scope: Name, hash: u64 },
}

impl RefusalLog {
    pub(crate) fn new() -> Self {
        Self {
            places: (0..KEPT).map(|_| Mutex::default()).collect(),
            next: AtomicU64::new(0),
            start: Time::now(),
        }
    }

    pub(crate) fn add(&self, decided: &Decided<'_>, blocks: &BlockSet) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(place) = self.place(number) else {
            return;
        };
        let refused = decided.refused_client();
        let client = match refused {
            Some((_, key)) => Some(Client::of(key, blocks)),
            // The lists and missing keys refuse before the limits read their keys.
            None => blocks
                .client_of(&decided.head)
                .map(|key| Client::of(&key, blocks)),
        };
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        place.at = Some(Time::now());
        place.outcome = decided.label();
        place.limit = refused.map(|(limit, _)| limit);
        place.client = client;
        place.retry_after = decided.retry_after();
        place.version = decided.version;
        let route = decided.head.matched_route();
        set(
            &mut place.route,
            route.filter(|route| route.len() <= LONGEST_ROUTE),
        );
        set(&mut place.request_id, decided.request_id());
        set(&mut place.trace_id, decided.trace_id());
    }

    /// Returns the selected refusals, the newest first, at most `most`.
    pub(crate) fn list(
        &self,
        filter: &RefusalFilter,
        most: usize,
        blocks: &BlockSet,
    ) -> RefusalList {
        let (end, clients) = (self.next.load(Ordering::Relaxed), filter.numbers());
        let mut list = RefusalList {
            refusals: Vec::new(),
            since: self.start,
        };
        for number in (end.saturating_sub(KEPT)..end).rev() {
            let Some(place) = self.place(number) else {
                continue;
            };
            let place = place.lock().unwrap_or_else(PoisonError::into_inner);
            // Another thread has this place, and has not written it yet.
            let Some(at) = place.at else {
                continue;
            };
            if end > KEPT {
                list.since = at;
            }
            if list.refusals.len() < most
                && filter.has_time(at)
                && place.is_of(filter)
                && place.is_of_client(clients.as_deref(), blocks)
            {
                list.refusals.push(place.read(at, blocks));
            }
        }
        list
    }

    fn place(&self, number: u64) -> Option<&Mutex<Place>> {
        self.places.get(usize::try_from(number % KEPT).ok()?)
    }
}

impl Client {
    fn of(key: &Key<'_>, blocks: &BlockSet) -> Self {
        if key.as_bytes().len() <= LONGEST_KEY {
            Self::Known(key.to_static())
        } else {
            let (scope, hash) = (key.scope(), blocks.hash(key));
            Self::Hashed { scope, hash }
        }
    }

    const fn scope(&self) -> Name {
        match self {
            Self::Known(key) => key.scope(),
            Self::Hashed { scope, .. } => *scope,
        }
    }

    fn hash(&self, blocks: &BlockSet) -> u64 {
        match self {
            Self::Known(key) => blocks.hash(key),
            Self::Hashed { hash, .. } => *hash,
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            Self::Known(key) => TopClient::text_of(key),
            Self::Hashed { .. } => None,
        }
    }
}

impl Place {
    fn is_of(&self, filter: &RefusalFilter) -> bool {
        let limit = self.limit.map(Name::as_str);
        let scope = self.client.as_ref().map(|client| client.scope().as_str());
        filter
            .limit
            .as_deref()
            .is_none_or(|asked| limit == Some(asked))
            && filter
                .scope
                .as_deref()
                .is_none_or(|asked| scope == Some(asked))
            && filter.is_of_request(&self.request_id, &self.trace_id)
    }

    fn is_of_client(&self, clients: Option<&[u64]>, blocks: &BlockSet) -> bool {
        let is_one = |clients: &[u64]| {
            let client = self.client.as_ref();
            client.is_some_and(|client| clients.contains(&client.hash(blocks)))
        };
        clients.is_none_or(is_one)
    }

    fn read(&self, at: Time, blocks: &BlockSet) -> Refusal {
        let client = self.client.as_ref();
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Refusal {
            at,
            outcome: self.outcome,
            limit: self.limit.map(Name::as_str),
            scope: client.map(|client| client.scope().as_str()),
            hash: client.map(|client| format!("{:016x}", client.hash(blocks))),
            key: client.and_then(Client::text),
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
