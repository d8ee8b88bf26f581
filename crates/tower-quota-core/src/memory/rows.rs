//! Plain checks, decided in rows: any limits, in any order, of one key or several.
//!
//! The decision is the model's. A request that rows cannot express is left to the model.

use core::{array, ptr};

use super::Inner;
use super::evicted::Evicted;
use super::place::Place;
use super::row::{Content, Count, Counts, Mark, Row};
use super::shard::{Context, Shard};
use crate::algorithm::State;
use crate::charge::Charge;
use crate::decision::Decision;
use crate::entry::TRUSTED_LEAD;
use crate::key::Key;
use crate::outcome::Outcome;
use crate::status::LimitStatus;
use crate::sync::{MutexGuard, locked};
use crate::time::Timestamp;

/// A charge of the request, and what the row of its key says.
#[derive(Clone, Copy, Default)]
struct Judged {
    /// The count now.
    count: u64,
    /// The count with the charge.
    after: u64,
    /// The position of its key.
    key: usize,
    stored: Stored,
}

/// How the row counts the limit.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stored {
    /// Not at all.
    #[default]
    No,
    /// At this position, by the charge's quota.
    At(usize),
    ByOtherQuota,
}

/// What a locked shard holds of a key.
#[derive(Default)]
struct Found<'g> {
    row: Option<&'g mut Row>,
    evicted: Option<&'g Evicted>,
}

/// A request of `N` charges while it is decided. The number is a constant, so that no loop needs a counter.
pub(super) struct Request<'r, const N: usize> {
    store: &'r Inner,
    charges: &'r [Charge<'r>; N],
    judged: [Judged; N],
    /// The keys, in the order of their shards.
    places: [Place; N],
    keys: usize,
    now: u64,
    is_admitted: bool,
}

impl<'r, const N: usize> Request<'r, N> {
    pub(super) fn new(store: &'r Inner, charges: &'r [Charge<'r>; N]) -> Self {
        Self {
            store,
            charges,
            judged: [Judged::default(); N],
            places: [Place::default(); N],
            keys: 0,
            now: 0,
            is_admitted: false,
        }
    }

    /// Decides the charges by their rows. Returns `false`, and charges nothing, if the model has to decide.
    #[inline(always)]
    pub(super) fn decide(&mut self) -> bool {
        if !self.charges.iter().all(Charge::fits_row) {
            return false;
        }
        // Read before the keys are hashed, which the processor does meanwhile.
        self.now = self.store.time.now().as_micros();
        self.find_keys() && self.write().is_some()
    }

    /// Finds the keys of all charges. Returns `false` if two are in one shard.
    #[inline]
    fn find_keys(&mut self) -> bool {
        let mut last: Option<&Key<'_>> = None;
        for (position, charge) in self.charges.iter().enumerate() {
            // The charges of one client share its key, which is hashed once.
            if last.is_some_and(|last| ptr::eq(last, charge.key())) {
                self.judged[position].key = self.judged[position - 1].key;
                continue;
            }
            last = Some(charge.key());
            let hash = self.store.hash(charge.key());
            let shard = self.store.shard_of(hash);
            let mut key = 0;
            while key < self.keys && self.places[key].shard < shard {
                key += 1;
            }
            let is_known = key < self.keys && self.places[key].shard == shard;
            if is_known && self.places[key].hash != hash {
                return false;
            }
            if !is_known {
                self.insert_key(key, Place { shard, hash });
            }
            self.judged[position].key = key;
        }
        true
    }

    /// Inserts a key before those of later shards.
    fn insert_key(&mut self, key: usize, place: Place) {
        if key < self.keys {
            self.places[key..=self.keys].rotate_right(1);
            for judged in &mut self.judged {
                judged.key += usize::from(judged.key >= key);
            }
        }
        self.places[key] = place;
        self.keys += 1;
    }

    /// Decides the charges, and writes their rows. Returns `None` if the model has to decide.
    ///
    /// Shards are locked in their order, so that two requests never wait for each other. They stay locked until all charges
    /// are decided. The last shard is often that of [`Key::EVERYONE`], which every request may need. It is locked for the
    /// shortest time.
    #[inline(always)]
    fn write(&mut self) -> Option<()> {
        let clock = self.now;
        let last = self.keys - 1;
        let mut guards = [const { None }; N];
        let mut others: [Found<'_>; N] = array::from_fn(|_| Found::default());
        for (key, guard) in guards[..last].iter_mut().enumerate() {
            others[key] = self.find(key, guard);
        }
        let mut guard = None;
        let mut found = self.find(last, &mut guard);
        // The model knows whether a row that is far ahead of the clock can be true.
        if self.now > clock.saturating_add(TRUSTED_LEAD) {
            return None;
        }
        self.is_admitted = self.judge(&others, &found)?;
        let mut judged = self.judged.iter();
        if !self.is_admitted && judged.any(|judged| judged.stored == Stored::ByOtherQuota) {
            // The model converts the row also for a refused request.
            return None;
        }
        if !self.settle(last, &mut found) {
            self.complete(last, guard.as_deref_mut()?);
        }
        drop(guard);
        let mut is_complete = true;
        for (key, found) in others[..last].iter_mut().enumerate() {
            is_complete &= self.settle(key, found);
        }
        if !is_complete {
            for (key, guard) in guards.iter_mut().flatten().enumerate() {
                self.complete(key, guard);
            }
        }
        Some(())
    }

    /// Locks the shard of a key, and finds its row. A row that was changed later than the clock says sets the instant.
    #[inline(always)]
    fn find<'g>(&mut self, key: usize, guard: &'g mut Option<MutexGuard<'r, Shard>>) -> Found<'g> {
        let Place { shard, hash } = self.places[key];
        let shard = &mut **guard.insert(locked(&self.store.shards[shard].0));
        let row = shard.rows.find_mut(hash, |row| row.hash == hash);
        if let Some(row) = &row {
            self.now = self.now.max(row.at());
        }
        Found {
            row,
            evicted: shard.evicted.as_deref(),
        }
    }

    /// Reads the counts of all charges, and returns whether they fit. Returns `None` if the model has to decide.
    #[inline(always)]
    fn judge(&mut self, others: &[Found<'_>; N], last: &Found<'_>) -> Option<bool> {
        let mut fits = true;
        for (position, charge) in self.charges.iter().enumerate() {
            let (earlier, judged) = self.judged.split_at_mut(position);
            let judged = &mut judged[0];
            let limit = charge.counter().id;
            // The model counts a limit that the request has twice.
            for (other, earlier) in self.charges.iter().zip(earlier) {
                if earlier.key == judged.key && other.counter().id == limit {
                    return None;
                }
            }
            let found = if judged.key + 1 == self.keys {
                last
            } else {
                &others[judged.key]
            };
            if let Some(row) = &found.row {
                (judged.count, judged.stored) = read(row, charge, self.now)?;
            }
            if judged.stored == Stored::No
                && let Some(evicted) = found.evicted
            {
                let limit = (self.places[judged.key].hash, limit);
                if evicted.filter.until(limit, self.now).is_some() {
                    return None;
                }
            }
            if charge.fits(judged.count, self.now) {
                judged.after = charge.added(judged.count, self.now)?;
            } else {
                fits = false;
            }
        }
        Some(fits)
    }

    /// Writes the row of a key. Returns `false` if limits have to be added.
    #[inline(always)]
    fn settle(&self, key: usize, found: &mut Found<'_>) -> bool {
        let Some(row) = &mut found.row else {
            return !self.is_admitted;
        };
        if !self.is_admitted {
            let mut own = self.charges.iter().zip(&self.judged);
            if own.any(|(charge, judged)| {
                judged.key == key
                    && matches!(charge.outcome(judged.count, self.now), Outcome::Refuse(_))
            }) {
                row.mark(Mark::Refused);
            }
            return true;
        }
        row.advance(self.now);
        row.mark(Mark::Charged);
        let mut is_complete = true;
        for judged in &self.judged {
            match judged.stored {
                _ if judged.key != key => {}
                Stored::At(position) => row.counts_mut()[position].value = judged.after,
                _ => is_complete = false,
            }
        }
        is_complete
    }

    /// Adds limits that a row does not count yet, or counts by another quota. Adds the row if there is none.
    #[cold]
    fn complete(&self, key: usize, shard: &mut Shard) {
        let mut added = Counts::new();
        for (charge, judged) in self.charges.iter().zip(&self.judged) {
            if judged.key == key && !matches!(judged.stored, Stored::At(_)) {
                added.push(shard.count(charge.counter(), judged.after));
            }
        }
        let Place {
            shard: number,
            hash,
        } = self.places[key];
        let Some(row) = shard.row_mut(hash) else {
            let context = Context {
                now: self.now,
                capacity: self.store.capacity_of(number),
                together: &self.places[..self.keys],
            };
            return shard.insert(hash, Content::of(added), Mark::Charged, &context);
        };
        let mut counts = Counts::from(row.counts());
        let is_replaced = |limit| {
            added
                .iter()
                .any(|count: &Count| count.definition.limit == limit)
        };
        counts.retain(|count| count.value > 0 && !is_replaced(count.definition.limit));
        counts.append(&mut added);
        row.content = Content::of(counts);
    }

    /// Writes the decision.
    pub(super) fn conclude(&self, decision: &mut Decision) {
        let statuses = (0..N).map(|position| self.status(position));
        decision.replace(self.is_admitted, Timestamp::from_micros(self.now), statuses);
    }

    /// Returns the status of a limit.
    #[inline]
    pub(super) fn status(&self, position: usize) -> LimitStatus {
        let charge = &self.charges[position];
        let judged = &self.judged[position];
        let count = if self.is_admitted {
            judged.after
        } else {
            judged.count
        };
        charge.status(count, self.now, self.is_admitted)
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
        return Some((0, Stored::No));
    };
    let value = count.value_at(row.at(), now);
    if count.definition.is_of(counter) {
        return Some((value, Stored::At(position)));
    }
    if value == 0 {
        // A limit of which nothing is used is the same by any quota.
        return Some((0, Stored::No));
    }
    let old = &count.definition.quota;
    let converted = State::unpacked(value, old, now).convert(old, counter.quota, now);
    Some((converted.packed(counter.quota, now)?, Stored::ByOtherQuota))
}
