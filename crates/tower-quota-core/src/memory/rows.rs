//! Plain checks, decided in rows: any limits, in any order, of one key or several.
//!
//! The decision equals the model's. The model decides what rows cannot express.

use super::Inner;
use super::place::Place;
use super::row::{Content, Counts, Mark, Row};
use super::shard::{Context, Shard};
use crate::algorithm::State;
use crate::charge::Charge;
use crate::decision::Decision;
use crate::entry::TRUSTED_LEAD;
use crate::outcome::Outcome;
use crate::status::LimitStatus;
use crate::sync::{MutexGuard, locked};
use crate::time::Timestamp;

/// A request of `N` charges. The number is a constant, so that the request needs no heap and no loop a counter.
pub(super) struct Request<'r, const N: usize> {
    store: &'r Inner,
    charges: &'r [Charge<'r>; N],
    judged: [Judged; N],
    /// The places of the keys, each once and in the order of their shards.
    places: [Place; N],
    keys: usize,
    now: u64,
    is_admitted: bool,
}

/// A charge and the count of its limit.
#[derive(Clone, Copy)]
struct Judged {
    /// The hash of the charge's key.
    hash: u64,
    /// The count now.
    count: u64,
    /// The count with the charge.
    after: u64,
    stored: Stored,
}

impl Judged {
    const UNUSED: Self = Self {
        hash: 0,
        count: 0,
        after: 0,
        stored: Stored::Absent,
    };
}

/// How a row counts a limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stored {
    Absent,
    /// At this position, by the charge's quota.
    At(usize),
    ByOtherQuota,
}

/// A key whose shard is locked.
struct LockedKey<'s> {
    place: Place,
    shard: MutexGuard<'s, Shard>,
    /// The bucket of the row in the table.
    bucket: Option<usize>,
}

impl LockedKey<'_> {
    fn row(&self) -> Option<&Row> {
        self.shard.rows.get_bucket(self.bucket?)
    }
}

impl<'r, const N: usize> Request<'r, N> {
    pub(super) fn new(store: &'r Inner, charges: &'r [Charge<'r>; N]) -> Self {
        Self {
            store,
            charges,
            judged: [Judged::UNUSED; N],
            places: [Place::default(); N],
            keys: 0,
            now: 0,
            is_admitted: true,
        }
    }

    /// Decides the charges by their rows. Returns `None`, and charges nothing, if the model has to decide.
    #[inline(always)]
    pub(super) fn decide(&mut self) -> Option<()> {
        if !self.charges.iter().all(Charge::fits_row) {
            return None;
        }
        // Read before the keys are hashed, because the processor does both at the same time.
        let clock = self.store.time.now().as_micros();
        self.find_places();
        let mut keys = [const { None }; N];
        self.lock(&mut keys)?;
        let touched = keys
            .iter()
            .flatten()
            .filter_map(LockedKey::row)
            .map(Row::at);
        self.now = touched.fold(clock, u64::max);
        // The model decides whether to trust a row that is far ahead of the clock.
        if self.now > clock.saturating_add(TRUSTED_LEAD) {
            return None;
        }
        self.judge(&keys)?;
        // The last shard belongs to Key::EVERYONE, which every request may need, so it is released first.
        for slot in keys.iter_mut().rev() {
            if let Some(key) = slot {
                self.settle(key);
                *slot = None;
            }
        }
        Some(())
    }

    #[inline(always)]
    fn find_places(&mut self) {
        for (judged, hash) in self.judged.iter_mut().zip(self.store.hashes(self.charges)) {
            judged.hash = hash;
            let shard = self.store.shard_of(hash);
            let place = Place { shard, hash };
            if !self.places[..self.keys].contains(&place) {
                self.places[self.keys] = place;
                self.keys += 1;
                self.places[..self.keys].sort_unstable();
            }
        }
    }

    /// Locks the shards of all keys in their order, so that two requests never wait for each other.
    ///
    /// Returns `None` if two keys share a shard. The model decides such requests.
    #[inline(always)]
    fn lock(&self, keys: &mut [Option<LockedKey<'r>>; N]) -> Option<()> {
        let mut last = None;
        for (key, &place) in keys.iter_mut().zip(&self.places[..self.keys]) {
            if last.replace(place.shard) == Some(place.shard) {
                return None;
            }
            let shard = locked(&self.store.shards[place.shard].0);
            let hash = place.hash;
            let bucket = shard.rows.find_bucket_index(hash, |row| row.hash == hash);
            *key = Some(LockedKey {
                place,
                shard,
                bucket,
            });
        }
        Some(())
    }

    /// Reads the counts of all charges. Returns `None` if the model has to decide.
    #[inline(always)]
    fn judge(&mut self, keys: &[Option<LockedKey<'_>>; N]) -> Option<()> {
        for (position, charge) in self.charges.iter().enumerate() {
            let (earlier, judged) = self.judged.split_at_mut(position);
            let judged = &mut judged[0];
            let hash = judged.hash;
            let limit = charge.counter().id;
            // The model counts a limit that the request has twice.
            let mut earlier = self.charges.iter().zip(earlier);
            if earlier.any(|(other, earlier)| earlier.hash == hash && other.counter().id == limit) {
                return None;
            }
            let key = keys.iter().flatten().find(|key| key.place.hash == hash)?;
            if let Some(row) = key.row() {
                (judged.count, judged.stored) = read(row, charge, self.now)?;
            }
            if judged.stored == Stored::Absent
                && key.shard.spent_until((hash, limit), self.now).is_some()
            {
                return None;
            }
            if charge.fits(judged.count, self.now) {
                judged.after = charge.added(judged.count, self.now)?;
            } else {
                self.is_admitted = false;
            }
        }
        // The model converts the row also for a refused request.
        let mut judged = self.judged.iter();
        let is_converted = judged.any(|judged| judged.stored == Stored::ByOtherQuota);
        (self.is_admitted || !is_converted).then_some(())
    }

    /// Writes the row of a key, and unlocks its shard.
    #[inline(always)]
    fn settle(&self, key: &mut LockedKey<'_>) {
        let Place { shard, hash } = key.place;
        let row = key
            .bucket
            .and_then(|bucket| key.shard.rows.get_bucket_mut(bucket));
        let own = self.charges.iter().zip(&self.judged);
        let mut own = own.filter(|(_, judged)| judged.hash == hash);
        if !self.is_admitted {
            let is_refused = own.any(|(charge, judged)| {
                matches!(charge.outcome(judged.count, self.now), Outcome::Refuse(_))
            });
            if let Some(row) = row
                && is_refused
            {
                row.mark(Mark::Refused);
            }
            return;
        }
        let mut is_complete = row.is_some();
        if let Some(row) = row {
            row.advance(self.now);
            row.mark(Mark::Charged);
            let counts = row.counts_mut();
            for (_, judged) in own {
                match judged.stored {
                    Stored::At(position) => counts[position].value = judged.after,
                    _ => is_complete = false,
                }
            }
        }
        if !is_complete {
            let context = Context {
                now: self.now,
                capacity: self.store.capacity_of(shard),
                together: &self.places[..self.keys],
            };
            self.complete(hash, &mut key.shard, &context);
        }
    }

    /// Adds limits that a row does not count yet, or counts by another quota. Adds the row if there is none.
    #[cold]
    fn complete(&self, hash: u64, shard: &mut Shard, context: &Context<'_>) {
        let mut added = Counts::new();
        for (charge, judged) in self.charges.iter().zip(&self.judged) {
            if judged.hash == hash && !matches!(judged.stored, Stored::At(_)) {
                added.push(shard.count(charge.counter(), judged.after));
            }
        }
        let Some(row) = shard.row_mut(hash) else {
            return shard.insert(hash, Content::of(added), Mark::Charged, context);
        };
        for count in row.counts() {
            let limit = count.definition.limit;
            let is_replaced = added.iter().any(|added| added.definition.limit == limit);
            if count.value > 0 && !is_replaced {
                added.push(count.clone());
            }
        }
        row.content = Content::of(added);
    }

    /// Writes the decision.
    pub(super) fn conclude(&self, decision: &mut Decision) {
        let statuses = (0..N).map(|position| self.status(position));
        decision.replace(self.is_admitted, Timestamp::from_micros(self.now), statuses);
    }

    /// Returns the status of a limit.
    #[inline]
    pub(super) fn status(&self, position: usize) -> LimitStatus {
        let judged = &self.judged[position];
        let count = if self.is_admitted {
            judged.after
        } else {
            judged.count
        };
        self.charges[position].status(count, self.now, self.is_admitted)
    }
}

/// Returns the count of a charge's limit, by the charge's quota. Returns `None` if the model has to decide.
#[inline(always)]
fn read(row: &Row, charge: &Charge<'_>, now: u64) -> Option<(u64, Stored)> {
    if row.entry().is_some() {
        return None;
    }
    let counter = charge.counter();
    let mut counts = row.counts().iter().enumerate();
    let Some((position, count)) = counts.find(|(_, count)| count.definition.limit == counter.id)
    else {
        return Some((0, Stored::Absent));
    };
    let value = count.value_at(row.at(), now);
    if count.definition.is_of(counter) {
        return Some((value, Stored::At(position)));
    }
    if value == 0 {
        // A limit with nothing used is the same by any quota.
        return Some((0, Stored::Absent));
    }
    let old = &count.definition.quota;
    let converted = State::unpacked(value, old, now).convert(old, counter.quota, now);
    Some((converted.packed(counter.quota, now)?, Stored::ByOtherQuota))
}
