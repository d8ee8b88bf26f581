//! Decides plain checks in the rows, with the same results as the model. A request may have any
//! limits, on one key or several.

use super::Inner;
use super::place::Place;
use super::row::{Content, Counts, Mark, Row};
use super::shard::{Context, Shard};
use crate::algorithm::State;
use crate::charge::Charge;
use crate::decision::Decision;
use crate::entry::TRUSTED_LEAD;
use crate::status::LimitStatus;
use crate::sync::{MutexGuard, locked};
use crate::time::Timestamp;

/// A request of `N` charges. The number is a constant, which unrolls the loops and avoids allocations.
pub(super) struct Request<'r, const N: usize> {
    store: &'r Inner,
    charges: &'r [Charge<'r>; N],
    judged: [Judged; N],
    places: [Place; N],
    keys: usize,
    now: u64,
    is_admitted: bool,
}

#[derive(Clone, Copy)]
struct Judged {
    hash: u64,
    count: u64,
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stored {
    Absent,
    At(usize),
    ByOtherQuota,
}

struct LockedKey<'s> {
    place: Place,
    shard: MutexGuard<'s, Shard>,
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

    /// Decides the charges by their rows. If the model has to decide, returns `None` without a charge.
    #[inline(always)]
    pub(super) fn decide(&mut self) -> Option<()> {
        if !self.charges.iter().all(Charge::fits_row) {
            return None;
        }
        // Read the clock before the keys are hashed, because the processor does both at the same
        // time.
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
        // Unlock from the last shard on. The last one may belong to `Key::EVERYONE`, for which most
        // threads wait.
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

    /// Locks the shards of all keys in ascending order, so that two requests never wait for each other.
    ///
    /// The model decides a request with two keys in one shard.
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

    #[inline(always)]
    fn judge(&mut self, keys: &[Option<LockedKey<'_>>; N]) -> Option<()> {
        for (position, charge) in self.charges.iter().enumerate() {
            let (earlier, judged) = self.judged.split_at_mut(position);
            let judged = &mut judged[0];
            let hash = judged.hash;
            let limit = charge.counter().id;
            // The model decides a request with two charges of a limit.
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
        // A refused request converts the row too, which only the model does.
        let mut judged = self.judged.iter();
        let is_converted = judged.any(|judged| judged.stored == Stored::ByOtherQuota);
        (self.is_admitted || !is_converted).then_some(())
    }

    #[inline(always)]
    fn settle(&self, key: &mut LockedKey<'_>) {
        let Place { shard, hash } = key.place;
        let row = key
            .bucket
            .and_then(|bucket| key.shard.rows.get_bucket_mut(bucket));
        let own = self.charges.iter().zip(&self.judged);
        let mut own = own.filter(|(_, judged)| judged.hash == hash);
        if !self.is_admitted {
            // A cost above the capacity never fits, and says nothing about the client.
            let is_refused = own.any(|(charge, judged)| {
                charge.units() <= charge.quota().capacity() && !charge.fits(judged.count, self.now)
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

    pub(super) fn conclude(&self, decision: &mut Decision) {
        let statuses = (0..N).map(|position| self.status(position));
        decision.replace(self.is_admitted, Timestamp::from_micros(self.now), statuses);
    }

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
        // An unused limit needs no conversion, because it is full by any quota.
        return Some((0, Stored::Absent));
    }
    let old = &count.definition.quota;
    let converted = State::unpacked(value, old, now).convert(old, counter.quota, now);
    Some((converted.packed(counter.quota, now)?, Stored::ByOtherQuota))
}
