//! Plain checks of any limits of any keys.
//!
//! Rows that count all limits of the request are changed in place, whatever their order and quotas. Other rows are decided
//! on drafts.

use smallvec::SmallVec;

use super::Inner;
use super::capacity::Capacity;
use super::check::{Others, conclude};
use super::draft::{Draft, DraftCharge};
use super::insert::WriteContext;
use super::interned::Interned;
use super::place::{KeyPlace, Keys};
use super::row::{Count, Mark, NARROW, RowMut, WIDE};
use super::table::{Buckets, Table, row_of};
use crate::algorithm::bucket;
use crate::charge::{Charge, Operation};
use crate::decision::Decision;
use crate::statuses::Statuses;
use crate::sync::{MutexGuard, locked};
use crate::time::Timestamp;

/// The most charges that are decided on drafts.
const MOST_CHARGES: usize = 8;

impl Inner {
    /// Checks `N` charges of any keys.
    #[inline(never)]
    pub(super) fn check_several<const N: usize>(&self, charges: [&Charge<'_>; N], decision: &mut Decision) {
        if !charges.iter().all(|charge| charge.is_plain()) || !self.check_rows(charges, decision) {
            self.check_at_length(charges, decision);
        }
    }

    /// Makes the decision in the rows of the keys, where new keys get rows of full limits.
    ///
    /// Does nothing when a row does not count all of its limits, or when two of the keys are in one table.
    #[inline]
    fn check_rows<const N: usize>(&self, charges: [&Charge<'_>; N], decision: &mut Decision) -> bool {
        let (mut hashes, mut numbers, mut keys) = ([0; N], [0; N], [0; N]);
        for limit in 0..N {
            let is_same = |other: &usize| core::ptr::eq(charges[*other].key(), charges[limit].key());
            keys[limit] = (0..limit).find(is_same).unwrap_or(limit);
            if keys[limit] == limit {
                hashes[limit] = self.seed.hash(charges[limit].key());
                numbers[limit] = self.table_of(hashes[limit]);
                self.prefetches[numbers[limit]].fetch::<NARROW>(hashes[limit]);
            }
        }
        let is_key = |limit: usize| keys[limit] == limit;
        let share_table = |limit: usize| (0..limit).any(|other| is_key(other) && numbers[other] == numbers[limit]);
        if (1..N).any(|limit| is_key(limit) && share_table(limit)) {
            return false;
        }
        let now = self.time.now().as_micros();
        let mut tables = [const { None }; N];
        // In the order of the tables, so that two requests never wait for each other.
        for _ in 0..N {
            let waiting = (0..N).filter(|&limit| is_key(limit) && tables[limit].is_none());
            let Some(next) = waiting.min_by_key(|&limit| numbers[limit]) else { break };
            tables[next] = Some(locked(&self.tables[numbers[next]].0));
        }
        let request = RowsRequest { charges, keys, hashes, now };
        let mut has_opened = false;
        let is_decided = loop {
            match request.decide(&mut tables, decision) {
                Some(Attempt::NeedsRows) => has_opened = true,
                attempt => break attempt.is_some(),
            }
            if request.open(&mut tables, |key| self.capacity_of(numbers[key])).is_none() {
                break false;
            }
        };
        if has_opened {
            for (table, number) in tables.iter_mut().zip(numbers) {
                table.as_deref_mut().into_iter().for_each(|table| self.finish(number, table));
            }
        }
        is_decided
    }

    /// Checks charges of which a row does not count some limit.
    #[cold]
    #[inline(never)]
    pub(super) fn check_at_length<const N: usize>(&self, charges: [&Charge<'_>; N], decision: &mut Decision) {
        self.check_keys(&charges.map(|charge| *charge), decision);
    }

    /// Checks any number of charges of any keys.
    pub(super) fn check_keys(&self, charges: &[Charge<'_>], decision: &mut Decision) {
        if charges.len() > MOST_CHARGES
            || !charges.iter().all(Charge::is_plain)
            || self.check_drafts(charges, decision).is_none()
        {
            *decision = self.decide_by_model(Operation::Check, charges);
        }
    }

    /// Makes the decision on drafts, or does nothing if the model has to decide.
    fn check_drafts(&self, charges: &[Charge<'_>], decision: &mut Decision) -> Option<()> {
        let Keys { mut places, of } = self.keys_of(charges);
        let clock = self.time.now().as_micros();
        let mut tables = self.lock(&mut places);
        let mut now = clock;
        for place in &mut places {
            let table = &mut *tables[place.guard];
            place.row = table.find_trusted(place.hash, clock, self.capacity_of(place.table));
            now = now.max(place.row.map_or(0, |row| table.row(row).at()));
        }
        let drafts = places.iter().map(|place| Draft::new(place.hash, place.row));
        let mut drafts: SmallVec<[Draft; 2]> = drafts.collect();
        for (draft, place) in drafts.iter_mut().zip(&places) {
            draft.load(&tables[place.guard], now)?;
        }
        let (mut asked, mut is_admitted) = ([DraftCharge::default(); MOST_CHARGES], true);
        for ((charge, &key), asked) in charges.iter().zip(&of).zip(&mut asked) {
            drafts[key].judge(&mut tables[places[key].guard], charge, now, asked)?;
            is_admitted &= bucket::holds(charge.quota(), asked.used, charge.units());
        }
        if is_admitted {
            let taken = charges.iter().zip(&of).zip(&mut asked);
            taken.for_each(|((charge, &key), asked)| drafts[key].take(charge, asked));
        }
        for (draft, place) in drafts.iter().zip(&places) {
            let context = WriteContext { now, capacity: self.capacity_of(place.table), together: &places };
            draft.write(&mut tables[place.guard], is_admitted, &context);
        }
        // Last, because the drafts hold numbers.
        places.iter().for_each(|place| self.finish(place.table, &mut tables[place.guard]));
        drop(tables);
        conclude(decision, now, is_admitted, charges.len(), |limit| (&charges[limit], asked[limit].used));
        Some(())
    }
}

/// A request whose keys are in tables of their own. The first charge of each key stands for the key.
struct RowsRequest<'c, const N: usize> {
    charges: [&'c Charge<'c>; N],
    /// The first charge of each charge's key.
    keys: [usize; N],
    hashes: [u64; N],
    now: u64,
}

/// The result of an attempt to decide in rows.
enum Attempt {
    Decided,
    /// Nothing was done: new keys must get rows, after which it is decided like others.
    NeedsRows,
}

/// A row, and the numbers of its table's limits.
type KeyRow<'t> = (RowMut<'t>, &'t Interned);

impl<const N: usize> RowsRequest<'_, N> {
    /// Makes the decision, or does nothing when new keys must get rows first.
    ///
    /// The rows then count by the charges' quotas. Returns `None` when a row does not count all of its limits, and for a
    /// refusal that changes a quota.
    #[inline]
    fn decide(&self, tables: &mut [Option<MutexGuard<'_, Table>>; N], decision: &mut Decision) -> Option<Attempt> {
        let Self { charges, keys, now, .. } = *self;
        let has_filter = tables.iter().flatten().any(|table| table.rare.is_some());
        let mut rows = self.rows(tables);
        let (mut counts, mut positions, mut asked) = ([Count::default(); N], [0; N], [0_u32; N]);
        let (mut is_admitted, mut converted, mut has_new) = (true, 0_u32, false);
        for limit in 0..N {
            let (charge, key) = (charges[limit], keys[limit]);
            let (counter, next) = (charge.counter(), asked[key].trailing_ones() as usize);
            (positions[limit], counts[limit]) = match &rows[key] {
                // The limits of a new key are full, unless it was evicted.
                None => {
                    has_new = true;
                    (next, Count::default())
                }
                Some((row, interned)) => {
                    let (row, elapsed) = (row.read(), now.checked_sub(row.read().at())?);
                    let is_next = next < row.limits() && interned.is_limit(row.number(next), counter.id);
                    let position = if is_next { next } else { interned.position(row, counter.id)? };
                    let count = interned.count_for(counter, row.count(position), elapsed)?;
                    converted |= u32::from(count.number != row.number(position)) << limit;
                    (position, count)
                }
            };
            // The request has the same limit twice: the model counts both together.
            if asked[key] >> positions[limit] & 1 != 0 {
                return None;
            }
            asked[key] |= 1 << positions[limit];
            is_admitted &= bucket::holds(charge.quota(), counts[limit].value, charge.units());
        }
        if !is_admitted {
            // A refusal that converts a count may leave nothing used: the draft drops such a row.
            if converted != 0 || has_new && has_filter {
                return None;
            }
            for (key, row) in rows.iter_mut().enumerate() {
                let Some((row, _)) = row else { continue };
                let refuses =
                    |limit: usize| bucket::refuses(charges[limit].quota(), counts[limit].value, charges[limit].units());
                let is_refused = (0..N).any(|limit| keys[limit] == key && refuses(limit));
                row.mark(if is_refused { Mark::Refused } else { Mark::Neither });
            }
            conclude(decision, now, false, N, |limit| (charges[limit], counts[limit].value));
            return Some(Attempt::Decided);
        }
        for (row, asked) in rows.iter().zip(asked) {
            let Some((row, interned)) = row else { continue };
            if has_others(row, asked) && (Others { asked, interned }).have_windows(row.read()) {
                return None;
            }
        }
        if has_new {
            return Some(Attempt::NeedsRows);
        }
        for (row, asked) in rows.iter_mut().zip(asked) {
            let Some((row, interned)) = row else { continue };
            if has_others(row, asked) {
                Others { asked, interned }.advance(row, now);
            }
            row.set_at(now);
            row.mark(Mark::Charged);
        }
        for limit in 0..N {
            let Some((row, _)) = &mut rows[keys[limit]] else { continue };
            counts[limit].value += charges[limit].units() * charges[limit].quota().grain();
            if converted >> limit & 1 != 0 {
                row.set_number(positions[limit], counts[limit].number);
            }
            row.set_value(positions[limit], counts[limit].value);
        }
        let statuses = Statuses::from_fn(N, |limit| charges[limit].admitted(counts[limit].value));
        decision.admit(Timestamp::from_micros(now), statuses);
        Some(Attempt::Decided)
    }

    /// Returns the rows of the keys.
    #[inline]
    fn rows<'t>(&self, tables: &'t mut [Option<MutexGuard<'_, Table>>; N]) -> [Option<KeyRow<'t>>; N] {
        let mut rows = [const { None }; N];
        for ((row, table), hash) in rows.iter_mut().zip(tables).zip(self.hashes) {
            let Some(table) = table.as_deref_mut() else { continue };
            let words = match &mut table.buckets {
                Buckets::Narrow(buckets) => row_of(buckets, hash).map(<[u64; NARROW]>::as_mut_slice),
                Buckets::Wide(buckets) => row_of(buckets, hash).map(<[u64; WIDE]>::as_mut_slice),
            };
            *row = words.map(|words| (RowMut(words), &table.interned));
        }
        rows
    }

    /// Gives new keys rows of full limits.
    #[inline(never)]
    fn open<'a>(
        &self,
        tables: &mut [Option<MutexGuard<'_, Table>>; N],
        capacity_of: impl Fn(usize) -> &'a Capacity,
    ) -> Option<()> {
        for (key, table) in tables.iter_mut().enumerate() {
            let place = KeyPlace { hash: self.hashes[key], ..KeyPlace::default() };
            let Some(table) = table.as_deref_mut().filter(|table| table.find(place.hash).is_none()) else { continue };
            let own = (0..N).filter(|&limit| self.keys[limit] == key).map(|limit| self.charges[limit]);
            let context = WriteContext { now: self.now, capacity: capacity_of(key), together: &[place] };
            table.open(place.hash, own, &context)?;
        }
        Some(())
    }
}

/// Returns whether a row has limits that the request does not ask.
#[inline]
fn has_others(row: &RowMut<'_>, asked: u32) -> bool {
    asked != (1 << row.read().limits()) - 1
}
