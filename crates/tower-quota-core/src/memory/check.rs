//! Checks of plain charges, decided in the rows with the same results as [`decide`](crate::decide()).
//!
//! Nearly all requests are such checks. The first way that fits is taken:
//!
//! 1. If the row of the only key counts all limits of the request, the check is decided in the row. The order of the
//!    limits, other limits of the row and changed quotas make no difference.
//! 2. A new key gets a row of full limits, if they admit its request.
//! 3. Other checks are those of `several`: several keys, windows, and limits that are new to a row or were spent when it
//!    was evicted.

use super::bucket::ROWS;
use super::insert::WriteContext;
use super::interned::Interned;
use super::place::KeyPlace;
use super::row::{Mark, NARROW, RowMut, WIDE};
use super::rows::{Judged, KeyPart, Others, RowsRequest};
use super::table::{Buckets, Table, either, row_of};
use super::{Inner, MemoryStore};
use crate::algorithm::bucket;
use crate::charge::{Charge, Counter, Operation};
use crate::decision::Decision;
use crate::key::Key;
use crate::quota::Quota;
use crate::statuses::Statuses;
use crate::sync::locked;
use crate::time::Timestamp;

impl Inner {
    /// Decides, and overwrites `decision` with the result.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a caller that knows the number of charges needs no branch for it"
    )]
    pub(super) fn decide(
        &self,
        operation: Operation,
        charges: &[Charge<'_>],
        decision: &mut Decision,
    ) {
        if operation != Operation::Check {
            *decision = self.decide_by_model(operation, charges);
            return;
        }
        // The compiler knows the number of charges.
        match charges {
            [one] => self.check_key([one], decision),
            [one, two] => self.check_one_or_several([one, two], decision),
            [one, two, three] => self.check_one_or_several([one, two, three], decision),
            [one, two, three, four] => self.check_one_or_several([one, two, three, four], decision),
            _ => self.check_keys(charges, decision),
        }
    }

    #[inline]
    fn check_one_or_several<const N: usize>(
        &self,
        charges: [&Charge<'_>; N],
        decision: &mut Decision,
    ) {
        match charges
            .iter()
            .all(|charge| core::ptr::eq(charge.key(), charges[0].key()))
        {
            true => self.check_key(charges, decision),
            false => self.check_several(charges, decision),
        }
    }

    /// Checks `N` charges of one key.
    #[inline(never)] // Inlined together, they would run out of registers.
    fn check_key<const N: usize>(&self, charges: [&Charge<'_>; N], decision: &mut Decision) {
        if !charges.iter().all(|charge| charge.is_plain()) {
            return self.check_several(charges, decision);
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
            Buckets::Narrow(buckets) if N == 1 => row_of(buckets, hash)
                .map(|words| check_row(words, charges, now, &table.interned, self, decision)),
            Buckets::Narrow(buckets) => row_of(buckets, hash).map(|_| false),
            Buckets::Wide(buckets) => row_of(buckets, hash)
                .map(|words| check_row(words, charges, now, &table.interned, self, decision)),
        };
        let is_done = match found {
            Some(is_done) => is_done,
            None => self.check_new(charges, (hash, number), now, table, decision),
        };
        if !is_done {
            drop(guard);
            self.check_at_length(charges, decision);
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
        let context = WriteContext {
            now,
            capacity: self.capacity_of(number),
            together: &[KeyPlace {
                hash,
                ..KeyPlace::default()
            }],
        };
        let Some(position) = table.open(hash, charges.into_iter(), &context) else {
            return false;
        };
        let (bucket, row) = (position / ROWS, position % ROWS);
        let is_done = either!(&mut table.buckets, buckets => check_row(buckets[bucket].row_mut(row), charges, now, &table.interned, self, decision));
        self.finish(number, table);
        is_done
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
    pub(crate) fn check_bucket(
        &self,
        hash: u64,
        counter: Counter<'_>,
        cost: u64,
    ) -> Option<(u64, bool)> {
        let inner = &*self.inner;
        let number = inner.table_of(hash);
        inner.prefetches[number].fetch::<NARROW>(hash);
        let now = inner.time.now().as_micros();
        let mut guard = locked(&inner.tables[number].0);
        let table = &mut *guard;
        table.interned.prefetch::<1>();
        let Buckets::Narrow(buckets) = &mut table.buckets else {
            return None;
        };
        let (row, quota) = (RowMut(row_of(buckets, hash)?), counter.quota);
        let elapsed = now.checked_sub(row.read().at())?;
        if cost == 0 || !table.interned.is_bucket_of(row.read().number(0), counter) {
            return None;
        }
        let used = bucket::refilled(quota, row.read().value(0), elapsed);
        Some(charge_row(row, quota, used, cost, now))
    }
}

/// Makes the decision in a row, or does nothing when the row does not count all of the limits.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "a call would save and restore as many registers as the decision uses"
)]
fn check_row<const W: usize, const N: usize>(
    words: &mut [u64; W],
    charges: [&Charge<'_>; N],
    now: u64,
    interned: &Interned,
    inner: &Inner,
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
    let charged = |limit: usize| {
        charges[limit]
            .units()
            .wrapping_mul(charges[limit].quota().grain())
    };
    for limit in 0..N {
        let charge = charges[limit];
        if !interned.is_bucket_of(row.read().number(limit), charge.counter()) {
            return check_row_in_any_order(words, charges, now, interned, inner, decision);
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
    if W == WIDE && row.read().limits() != N {
        Others {
            asked: (1 << N) - 1,
            interned,
        }
        .advance(&mut row, now);
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
#[cold]
#[inline(never)]
fn check_row_in_any_order<const W: usize, const N: usize>(
    words: &mut [u64; W],
    charges: [&Charge<'_>; N],
    now: u64,
    interned: &Interned,
    inner: &Inner,
    decision: &mut Decision,
) -> bool {
    let (request, mut used) = (
        RowsRequest {
            inner,
            charges,
            now,
        },
        [0; N],
    );
    let (key, row) = (KeyPart::only::<N>(), (RowMut(words), interned));
    let verdict = request.decide_in_row(&key, &[], row, Judged::default(), &mut used);
    verdict.is_some_and(|verdict| request.conclude(verdict, &used, decision))
}

/// Charges the only limit of a row, if it fits. Returns the grains used afterwards, and whether it does.
#[inline]
fn charge_row(mut row: RowMut<'_>, quota: &Quota, used: u64, cost: u64, now: u64) -> (u64, bool) {
    if !bucket::holds(quota, used, cost) {
        row.mark(if bucket::refuses(quota, used, cost) {
            Mark::Refused
        } else {
            Mark::Neither
        });
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
    let refuses = (0..N)
        .any(|limit| bucket::refuses(charges[limit].quota(), used[limit], charges[limit].units()));
    row.mark(if refuses {
        Mark::Refused
    } else {
        Mark::Neither
    });
    decision.refuse(
        Timestamp::from_micros(now),
        Statuses::from_fn(N, |limit| charges[limit].refused(used[limit])),
    );
}
