//! Checks of plain charges, decided in the rows with the same results as [`decide`](crate::decide()).
//!
//! Nearly all requests are such checks. The first way that fits is taken:
//!
//! 1. If the key's row counts all limits of the request, the check is decided in the row. The order of the limits, other
//!    limits of the row and changed quotas make no difference.
//! 2. A new key gets a row of full limits, if they admit its request.
//! 3. Other plain checks are decided on drafts of their rows: several keys, and limits that are new to a row or were
//!    spent when it was evicted.

use core::time::Duration;

use smallvec::SmallVec;

use super::bucket::ROWS;
use super::draft::{Draft, DraftCharge};
use super::insert::WriteContext;
use super::interned::Interned;
use super::row::{Mark, NARROW, RowMut, WIDE};
use super::table::{Buckets, Table, either, row_of};
use super::{Inner, MemoryStore};
use crate::algorithm::bucket;
use crate::charge::{Charge, Counter, Operation};
use crate::decision::Decision;
use crate::key::Key;
use crate::outcome::Outcome;
use crate::quota::Quota;
use crate::status::{Left, LimitStatus};
use crate::statuses::Statuses;
use crate::sync::{MutexGuard, locked};
use crate::time::Timestamp;

/// The most charges, and the most keys, that are decided on drafts.
const MOST_CHARGES: usize = 8;
const MOST_KEYS: usize = 4;

impl Inner {
    /// Decides, and overwrites `decision` with the result.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a caller that knows the number of charges needs no branch for it")]
    pub(super) fn decide(&self, operation: Operation, charges: &[Charge<'_>], decision: &mut Decision) {
        if operation != Operation::Check {
            *decision = self.decide_by_model(operation, charges);
            return;
        }
        // The compiler knows the number of charges.
        match charges {
            [one] => self.check_key([one], decision),
            [one, two] if have_one_key([one, two]) => self.check_key([one, two], decision),
            [one, two, three] if have_one_key([one, two, three]) => self.check_key([one, two, three], decision),
            [one, two, three, four] if have_one_key([one, two, three, four]) => {
                self.check_key([one, two, three, four], decision);
            }
            _ => self.check_keys(charges, decision),
        }
    }

    /// Checks `N` charges of one key.
    #[inline(never)] // Inlined together, they would run out of registers.
    fn check_key<const N: usize>(&self, charges: [&Charge<'_>; N], decision: &mut Decision) {
        if !charges.iter().all(|charge| charge.is_plain()) {
            return self.check_by_model(&charges, decision);
        }
        let hash = self.seed.hash(charges[0].key());
        let number = self.table_of(hash);
        // The time is read while the row is being fetched.
        if N == 1 {
            self.prefetches[number].fetch::<NARROW>(hash);
        } else {
            self.prefetches[number].fetch::<WIDE>(hash);
        }
        let now = self.time.now().as_micros();
        let mut guard = locked(&self.tables[number].0);
        let table = &mut *guard;
        table.interned.prefetch::<N>();
        let found = match &mut table.buckets {
            Buckets::Narrow(buckets) if N == 1 => {
                row_of(buckets, hash).map(|words| check_row(words, charges, now, &table.interned, decision))
            }
            Buckets::Narrow(buckets) => row_of(buckets, hash).map(|_| false),
            Buckets::Wide(buckets) => {
                row_of(buckets, hash).map(|words| check_row(words, charges, now, &table.interned, decision))
            }
        };
        let is_done = match found {
            Some(is_done) => is_done,
            None => self.check_new(charges, (hash, number), now, table, decision),
        };
        if !is_done {
            self.check_draft(charges, (hash, number), now, guard, decision);
        }
    }

    /// Checks the first request of a key in a new row. Does nothing if no row may be made.
    #[inline(never)]
    fn check_new<const N: usize>(
        &self,
        charges: [&Charge<'_>; N],
        (hash, number): (u64, usize),
        now: u64,
        table: &mut Table,
        decision: &mut Decision,
    ) -> bool {
        let context = WriteContext { now, capacity: self.capacity_of(number), together: &[hash] };
        let Some(position) = table.open(hash, charges, &context) else { return false };
        let (bucket, row) = (position / ROWS, position % ROWS);
        let is_done = either!(&mut table.buckets, buckets => check_row(buckets[bucket].row_mut(row), charges, now, &table.interned, decision));
        self.finish(number, table);
        is_done
    }

    /// Checks `N` charges of one key on a draft of its row.
    #[inline(never)]
    fn check_draft<const N: usize>(
        &self,
        charges: [&Charge<'_>; N],
        (hash, number): (u64, usize),
        clock: u64,
        mut table: MutexGuard<'_, Table>,
        decision: &mut Decision,
    ) {
        let (mut drafts, mut asked) = ([Draft::new(hash, number)], [DraftCharge::default(); N]);
        let tables = core::slice::from_mut(&mut table);
        let Some((now, is_admitted)) = self.judge_on_drafts(tables, charges, &mut drafts, &mut asked, clock) else {
            drop(table);
            return self.check_by_model(&charges, decision);
        };
        let [draft] = drafts;
        let context = WriteContext { now, capacity: self.capacity_of(draft.table), together: &[draft.hash] };
        draft.write(&mut table, is_admitted, &context);
        self.finish(draft.table, &mut table);
        conclude(decision, now, is_admitted, N, |limit| (charges[limit], asked[limit].used));
    }

    /// Checks charges of any keys, on drafts of their rows if these can hold them.
    #[inline(never)]
    fn check_keys(&self, charges: &[Charge<'_>], decision: &mut Decision) {
        if charges.len() > MOST_CHARGES
            || !charges.iter().all(Charge::is_plain)
            || self.check_drafts(charges, decision).is_none()
        {
            *decision = self.decide_by_model(Operation::Check, charges);
        }
    }

    /// Makes the decision on drafts, or does nothing if the model has to decide.
    fn check_drafts(&self, charges: &[Charge<'_>], decision: &mut Decision) -> Option<()> {
        let (mut drafts, mut hashes, mut keys) = ([Draft::default(); MOST_KEYS], [0; MOST_KEYS], 0);
        let mut asked = [DraftCharge::default(); MOST_CHARGES];
        for (charge, asked) in charges.iter().zip(&mut asked) {
            let hash = self.seed.hash(charge.key());
            asked.draft = hashes[..keys].iter().position(|known| *known == hash).unwrap_or(keys);
            if asked.draft == keys {
                *hashes.get_mut(keys)? = hash;
                drafts[keys] = Draft::new(hash, self.table_of(hash));
                keys += 1;
            }
        }
        let (drafts, asked) = (&mut drafts[..keys], &mut asked[..charges.len()]);
        let clock = self.time.now().as_micros();
        let mut tables = self.lock(drafts);
        let (now, is_admitted) = self.judge_on_drafts(&mut tables, charges, drafts, asked, clock)?;
        for draft in &*drafts {
            let context = WriteContext { now, capacity: self.capacity_of(draft.table), together: &hashes[..keys] };
            draft.write(&mut tables[draft.guard], is_admitted, &context);
        }
        // Last, because the drafts hold numbers.
        drafts.iter().for_each(|draft| self.finish(draft.table, &mut tables[draft.guard]));
        drop(tables);
        conclude(decision, now, is_admitted, charges.len(), |limit| (&charges[limit], asked[limit].used));
        Some(())
    }

    /// Judges charges on drafts of their keys, and takes their units if all are admitted.
    ///
    /// Returns the instant of the decision and whether it admits; `None` if the model has to decide.
    #[inline]
    fn judge_on_drafts<'c>(
        &self,
        tables: &mut [MutexGuard<'_, Table>],
        charges: impl IntoIterator<Item = &'c Charge<'c>> + Copy,
        drafts: &mut [Draft],
        asked: &mut [DraftCharge],
        clock: u64,
    ) -> Option<(u64, bool)> {
        let mut now = clock;
        for draft in &mut *drafts {
            now = now.max(draft.find(&mut tables[draft.guard], clock, self.capacity_of(draft.table)));
        }
        for draft in &mut *drafts {
            draft.load(&tables[draft.guard], now)?;
        }
        let mut is_admitted = true;
        for (charge, asked) in charges.into_iter().zip(&mut *asked) {
            let draft = &mut drafts[asked.draft];
            draft.judge(&mut tables[draft.guard], charge, now, asked)?;
            is_admitted &= bucket::holds(charge.quota(), asked.used, charge.units());
        }
        if is_admitted {
            charges.into_iter().zip(asked).for_each(|(charge, asked)| drafts[asked.draft].take(charge, asked));
        }
        Some((now, is_admitted))
    }

    #[cold]
    #[inline(never)]
    fn check_by_model(&self, charges: &[&Charge<'_>], decision: &mut Decision) {
        let charges: SmallVec<[Charge<'_>; 4]> = charges.iter().map(|charge| **charge).collect();
        *decision = self.decide_by_model(Operation::Check, &charges);
    }
}

impl MemoryStore {
    /// Returns the hash that stands for a key in this store.
    #[inline]
    pub(crate) fn hash(&self, key: &Key<'_>) -> u64 {
        self.inner.seed.hash(key)
    }

    /// Checks one plain charge in its narrow row. Returns the grains used afterwards, and whether it is admitted.
    ///
    /// Returns `None`, and does nothing, when the row does not count the limit by this quota.
    #[inline]
    pub(crate) fn check_bucket(&self, hash: u64, counter: Counter<'_>, cost: u64) -> Option<(u64, bool)> {
        let inner = &*self.inner;
        let number = inner.table_of(hash);
        inner.prefetches[number].fetch::<NARROW>(hash);
        let now = inner.time.now().as_micros();
        let mut guard = locked(&inner.tables[number].0);
        let table = &mut *guard;
        table.interned.prefetch::<1>();
        let Buckets::Narrow(buckets) = &mut table.buckets else { return None };
        let (row, quota) = (RowMut(row_of(buckets, hash)?), counter.quota);
        let elapsed = now.checked_sub(row.read().at())?;
        if cost == 0 || !table.interned.is_bucket_of(row.read().number(0), counter) {
            return None;
        }
        let used = bucket::refilled(quota, row.read().value(0), elapsed);
        Some(charge_row(row, quota, used, cost, now))
    }
}

/// Returns whether both are counted by the same key.
#[inline]
fn have_one_key<const N: usize>(charges: [&Charge<'_>; N]) -> bool {
    charges.iter().all(|charge| core::ptr::eq(charge.key(), charges[0].key()))
}

/// Makes the decision in a row, or does nothing when the row does not count all of the limits.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a call would save and restore as many registers as the decision uses")]
fn check_row<const W: usize, const N: usize>(
    words: &mut [u64; W],
    charges: [&Charge<'_>; N],
    now: u64,
    interned: &Interned,
    decision: &mut Decision,
) -> bool {
    let mut row = RowMut(words);
    let from = row.read().at();
    // A row ahead of the clock is rare. Its instant is used, unless it is too far ahead to be true.
    if !row.read().may_have(N) || from > now {
        return false;
    }
    // The grains used with the charge. The number is valid only if the limit has room for the charge.
    let (mut after, mut is_admitted) = ([0; N], true);
    let charged = |limit: usize| charges[limit].units().wrapping_mul(charges[limit].quota().grain());
    for limit in 0..N {
        let charge = charges[limit];
        if !interned.is_bucket_of(row.read().number(limit), charge.counter()) {
            return check_row_in_any_order(words, charges, now, interned, decision);
        }
        let used = bucket::refilled(charge.quota(), row.read().value(limit), now - from);
        is_admitted &= bucket::holds(charge.quota(), used, charge.units());
        after[limit] = used.wrapping_add(charged(limit));
    }
    if !is_admitted {
        let used = core::array::from_fn(|limit| after[limit].wrapping_sub(charged(limit)));
        refuse_in_row(row, charges, used, now, decision);
        return true;
    }
    let has_others = W == WIDE && row.read().limits() != N;
    if has_others && !advance_others(&mut row, (1 << N) - 1, now, interned) {
        return false;
    }
    for (limit, after) in after.into_iter().enumerate() {
        row.set_value(limit, after);
    }
    row.set_at(now);
    row.mark(Mark::Charged);
    let statuses = Statuses::from_fn(N, |limit| charges[limit].admitted(after[limit]));
    decision.admit(Timestamp::from_micros(now), statuses);
    true
}

/// Makes the decision in a row that has the limits in another order, or counts them by other quotas.
///
/// The row then counts by the charges' quotas. A refusal that changes a quota is left to the draft.
#[cold]
#[inline(never)]
fn check_row_in_any_order<const W: usize, const N: usize>(
    words: &mut [u64; W],
    charges: [&Charge<'_>; N],
    now: u64,
    interned: &Interned,
    decision: &mut Decision,
) -> bool {
    let mut row = RowMut(words);
    let elapsed = now - row.read().at();
    let (mut numbers, mut used, mut positions) = ([0; N], [0; N], [0; N]);
    let (mut asked, mut is_admitted, mut is_converted) = (0_u32, true, false);
    for limit in 0..N {
        let charge = charges[limit];
        let Some(position) = interned.position(row.read(), charge.counter().id) else { return false };
        let known = row.read().count(position);
        let Some(count) = interned.count_for(charge.counter(), known, elapsed) else { return false };
        is_converted |= count.number != known.number;
        is_admitted &= bucket::holds(charge.quota(), count.value, charge.units());
        (numbers[limit], used[limit], positions[limit]) = (count.number, count.value, position);
        asked |= 1 << position;
    }
    // The request has the same limit twice: the model counts both together.
    if asked.count_ones() as usize != N {
        return false;
    }
    if !is_admitted {
        // A refusal that converts a count may leave nothing used: the draft drops such a row.
        if !is_converted {
            refuse_in_row(row, charges, used, now, decision);
        }
        return !is_converted;
    }
    if !advance_others(&mut row, asked, now, interned) {
        return false;
    }
    for limit in 0..N {
        used[limit] += charges[limit].units() * charges[limit].quota().grain();
        row.set_number(positions[limit], numbers[limit]);
        row.set_value(positions[limit], used[limit]);
    }
    row.set_at(now);
    row.mark(Mark::Charged);
    conclude(decision, now, true, N, |limit| (charges[limit], used[limit]));
    true
}

/// Charges the only limit of a row, if it fits. Returns the grains used afterwards, and whether it does.
#[inline]
fn charge_row(mut row: RowMut<'_>, quota: &Quota, used: u64, cost: u64, now: u64) -> (u64, bool) {
    if !bucket::holds(quota, used, cost) {
        row.mark(if bucket::refuses(quota, used, cost) { Mark::Refused } else { Mark::Neither });
        return (used, false);
    }
    let used = used + cost * quota.grain();
    row.set_value(0, used);
    row.set_at(now);
    row.mark(Mark::Charged);
    (used, true)
}

/// Refuses a request in the row of its key. `used` are the grains used of its limits.
#[inline(never)]
fn refuse_in_row<const N: usize>(
    mut row: RowMut<'_>,
    charges: [&Charge<'_>; N],
    used: [u64; N],
    now: u64,
    decision: &mut Decision,
) {
    let refuses = (0..N).any(|limit| bucket::refuses(charges[limit].quota(), used[limit], charges[limit].units()));
    row.mark(if refuses { Mark::Refused } else { Mark::Neither });
    conclude(decision, now, false, N, |limit| (charges[limit], used[limit]));
}

/// Writes the decision on this many charges.
///
/// `charge` returns a charge and the used grains of its limit, which include the charge if it is admitted.
#[inline]
fn conclude<'c>(
    decision: &mut Decision,
    now: u64,
    is_admitted: bool,
    charges: usize,
    charge: impl Fn(usize) -> (&'c Charge<'c>, u64),
) {
    let at = Timestamp::from_micros(now);
    if is_admitted {
        return decision.admit(at, Statuses::from_fn(charges, |limit| charge(limit).0.admitted(charge(limit).1)));
    }
    decision.refuse(at, Statuses::from_fn(charges, |limit| charge(limit).0.refused(charge(limit).1)));
}

/// Moves the buckets that are not in the request to `now`. Does nothing if there is a window.
#[cold]
#[inline(never)]
fn advance_others(row: &mut RowMut<'_>, asked: u32, now: u64, interned: &Interned) -> bool {
    let elapsed = now - row.read().at();
    let others = (0..row.read().limits()).filter(|position| asked >> position & 1 == 0);
    let refill = |row: &RowMut<'_>, position: usize| interned.refill(row.read().number(position));
    if others.clone().any(|position| refill(row, position) == 0) {
        return false;
    }
    for position in others {
        let back = elapsed.saturating_mul(refill(row, position));
        row.set_value(position, row.read().value(position).saturating_sub(back));
    }
    true
}

impl Charge<'_> {
    /// Returns the limit's status after it has admitted the charge, with this many grains used now.
    #[inline]
    fn admitted(&self, used: u64) -> LimitStatus {
        LimitStatus {
            name: self.name(),
            limit: self.quota().capacity(),
            left: Left::of_bucket(self.quota(), used),
            taken: self.units(),
            outcome: Outcome::Allow,
            is_shadow: false,
        }
    }

    /// Returns the limit's status after a refusal, with this many grains used before.
    #[inline]
    fn refused(&self, used: u64) -> LimitStatus {
        let (quota, cost) = (self.quota(), self.units());
        let outcome = match bucket::holds(quota, used, cost) {
            true => Outcome::Allow,
            false if cost > quota.capacity() => Outcome::Never,
            false => Outcome::Refuse(Duration::from_micros(bucket::until_fits(quota, used, cost))),
        };
        LimitStatus { outcome, taken: 0, ..self.admitted(used) }
    }
}
