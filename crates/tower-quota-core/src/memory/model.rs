//! Decisions by the model, for all algorithms and operations. Entries are taken out of their rows.

use core::sync::atomic::Ordering::Relaxed;
use std::sync::MutexGuard;

use smallvec::SmallVec;

use super::MemoryInner;
use super::capacity::Capacity;
use super::place::RowPlace;
use super::row::{Content, Mark, Row};
use super::shard::{Context, Shard};
use crate::charge::{Charge, Counter, Operation};
use crate::decide::decide;
use crate::decision::Decision;
use crate::entry::{Entry, Slot};
use crate::outcome::Outcome;
use crate::status::LimitStatus;
use crate::time::Timestamp;

struct CheckedOut {
    entry: Box<Entry>,
    row: Option<(u64, usize)>,
    before: Option<Box<Entry>>,
    /// The limits that were spent when the row was evicted, until these instants.
    restored: SmallVec<[(u32, u64); 2]>,
}

impl MemoryInner {
    pub(super) fn decide_by_model(&self, operation: Operation, charges: &[Charge<'_>]) -> Decision {
        let hashes: SmallVec<[u64; 4]> = self.hashes(charges).collect();
        let places = self.places_of(hashes.iter().copied());
        let mut guards = self.lock(&places);
        let clock = self.time.now();
        let mut all = Vec::with_capacity(places.len());
        for place in &places {
            let own = charges.iter().zip(&hashes);
            let own = own.filter(|(_, hash)| **hash == place.hash);
            let own = own.map(|(charge, _)| charge);
            let shard = shard_in(&mut guards, place);
            if operation == Operation::Reset {
                shard.forget_evicted(place.hash, own.clone());
            }
            all.push(shard.check_out(place.hash, own, clock, self.capacity_of(place.shard)));
        }
        let mut entries: Vec<&mut Entry> = all.iter_mut().map(|one| &mut *one.entry).collect();
        let entry_of = |charge: usize| {
            let key = places.iter().position(|place| place.hash == hashes[charge]);
            key.unwrap_or_default()
        };
        let decision = decide(operation, charges, clock, &mut entries, entry_of);
        drop(entries);
        for (place, one) in places.iter().zip(all) {
            let statuses = decision.statuses().iter().zip(&hashes);
            let own = statuses.filter(|(_, hash)| **hash == place.hash);
            let mark = mark_of(operation, &decision, own.map(|(status, _)| status));
            let context = Context {
                now: decision.at().as_micros(),
                capacity: self.capacity_of(place.shard),
                together: &places,
            };
            shard_in(&mut guards, place).check_in(place.hash, one, mark, &context);
        }
        decision
    }
}

fn shard_in<'g>(
    guards: &'g mut [(usize, MutexGuard<'_, Shard>)],
    place: &RowPlace,
) -> &'g mut Shard {
    let position = guards.partition_point(|(shard, _)| *shard < place.shard);
    &mut guards[position].1
}

impl MemoryInner {
    fn lock(&self, places: &[RowPlace]) -> SmallVec<[(usize, MutexGuard<'_, Shard>); 2]> {
        let mut guards: SmallVec<[(usize, MutexGuard<'_, Shard>); 2]> = SmallVec::new();
        for place in places {
            if guards.last().is_none_or(|(shard, _)| *shard != place.shard) {
                guards.push((place.shard, self.shards[place.shard].0.lock()));
            }
        }
        guards
    }
}

impl Shard {
    fn check_out<'c>(
        &mut self,
        hash: u64,
        charges: impl Iterator<Item = &'c Charge<'c>>,
        clock: Timestamp,
        capacity: &Capacity,
    ) -> CheckedOut {
        let (row, mut entry) = match self.take(hash) {
            Some(row) => (Some((row.touched, row.places())), row.into_entry()),
            None => (None, Box::default()),
        };
        let now = clock.max(entry.at()).as_micros();
        let mut restored = SmallVec::new();
        for charge in charges {
            let strikes = charge.strikes().map(|(counter, _)| (counter, true));
            for (counter, is_strikes) in [(charge.counter(), false)].into_iter().chain(strikes) {
                let quota = counter.quota.at(Timestamp::from_micros(now));
                let counter = Counter {
                    quota: &quota,
                    ..counter
                };
                if entry.slots.iter().any(|slot| slot.limit == counter.id) {
                    continue;
                }
                let Some(mut until) = self.spent_until((hash, counter.id), now) else {
                    continue;
                };
                capacity.filter_hits.fetch_add(1, Relaxed);
                if !is_strikes {
                    // Only strikes keep their debt, because the quota of a limit may have changed since the eviction.
                    until = until.min(Slot::spent(counter, now).unit_fits_at(now));
                }
                // A restored limit has the state of this instant.
                entry.at = now;
                entry.slots.push(Slot::spent_until(counter, until, now));
                restored.push((counter.id, until));
            }
        }
        CheckedOut {
            before: row.is_none().then(|| entry.clone()),
            entry,
            row,
            restored,
        }
    }

    /// Puts an entry back. An unchanged entry without a row is dropped.
    fn check_in(&mut self, hash: u64, one: CheckedOut, mark: Mark, context: &Context<'_>) {
        let CheckedOut {
            entry,
            row,
            before,
            restored,
        } = one;
        let is_unchanged = before.is_some_and(|before| before == entry);
        if let Some(evicted) = &mut self.evicted {
            for (limit, until) in restored {
                let (limit, rows) = ((hash, limit), context.capacity.shard_rows);
                if !is_unchanged {
                    evicted.filter.forget(limit);
                } else if mark == Mark::Refused {
                    // By a faster quota, the refusal promises a shorter wait than the filter remembers.
                    evicted.filter.remember(limit, until, context.now, rows);
                }
            }
        }
        if is_unchanged {
            return;
        }
        let at = entry.at;
        let is_empty = entry.is_empty();
        let content = self
            .counts_of(&entry)
            .unwrap_or_else(|| Content::model(entry));
        match row {
            Some((_, claimed)) if is_empty => context.capacity.forget(claimed),
            None if is_empty => {}
            Some((touched, claimed)) => {
                let mut row = Row::new(hash, 0, at, content);
                row.touched = touched;
                row.set_at(at);
                row.mark(mark);
                self.put_back(row, claimed, context);
            }
            None => self.insert(hash, content, mark, context),
        }
    }

    fn forget_evicted<'c>(&mut self, hash: u64, charges: impl Iterator<Item = &'c Charge<'c>>) {
        if let Some(evicted) = &mut self.evicted {
            for charge in charges {
                for id in charge.name().counter_ids() {
                    evicted.filter.forget((hash, id));
                }
            }
        }
    }
}

fn mark_of<'a>(
    operation: Operation,
    decision: &Decision,
    mut own: impl Iterator<Item = &'a LimitStatus>,
) -> Mark {
    // Peeks and refunds are not traffic of a client.
    if !operation.takes() && operation != Operation::Refuse {
        return Mark::Neither;
    }
    if decision.is_allowed() {
        return Mark::Charged;
    }
    match own.any(|status| !status.is_shadow && matches!(status.outcome, Outcome::Refuse(_))) {
        true => Mark::Refused,
        false => Mark::Neither,
    }
}
