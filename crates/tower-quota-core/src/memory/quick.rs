//! The decision that nearly all requests are: a check of plain charges by buckets, whose subjects' rows count these very
//! limits in this order. What [`decide`](crate::decide) does, done in the rows; here for one subject.

use core::time::Duration;

use super::Inner;
use super::known::Known;
use super::row::{RowMut, Use};
use super::sync::locked;
use super::table::{Buckets, row_of};
use crate::algorithm::bucket;
use crate::charge::{Charge, Operation};
use crate::decision::Decision;
use crate::outcome::Outcome;
use crate::status::{Left, LimitStatus};
use crate::statuses::Statuses;
use crate::time::Timestamp;

impl Inner {
    /// Makes a decision in its place, whatever was there.
    #[inline]
    pub(super) fn decide(&self, operation: Operation, charges: &[Charge<'_>], decision: &mut Decision) {
        if operation != Operation::Check {
            *decision = self.decide_any(operation, charges);
            return;
        }
        // Of a number that is known to the compiler.
        match charges {
            [one] => self.check_one([one], decision),
            [one, two] if have_one_key([one, two]) => self.check_one([one, two], decision),
            [one, two, three] if have_one_key([one, two, three]) => self.check_one([one, two, three], decision),
            [one, two, three, four] if have_one_key([one, two, three, four]) => {
                self.check_one([one, two, three, four], decision);
            }
            _ => self.check_several(charges, decision),
        }
    }

    /// Checks so many charges of one subject.
    #[inline(never)] // Each for itself: together they would be short of registers.
    fn check_one<const N: usize>(&self, charges: [&Charge<'_>; N], decision: &mut Decision) {
        if !charges.iter().all(|charge| charge.is_plain()) {
            return self.check_any(charges, decision);
        }
        let hash = self.seed.hash(charges[0].key());
        let number = self.table_of(hash);
        // Meanwhile the time is read.
        if N == 1 {
            self.hints[number].fetch::<3>(hash);
        } else {
            self.hints[number].fetch::<5>(hash);
        }
        let now = self.time.now().as_micros();
        let mut table = locked(&self.tables[number].0);
        let judged = match &mut table.buckets {
            Buckets::Narrow(buckets) if N == 1 => {
                row_of(buckets, hash).map(|words| judge_in(words, charges, now, &self.known, decision))
            }
            Buckets::Narrow(_) => None,
            Buckets::Wide(buckets) => {
                row_of(buckets, hash).map(|words| judge_in(words, charges, now, &self.known, decision))
            }
        };
        match judged {
            Some(Judged::Admitted) => {}
            Some(Judged::Refused { now, used }) => {
                // What is left is for the asker alone.
                drop(table);
                let standings = core::array::from_fn::<_, N, _>(|i| charges[i].refused(used[i]));
                decision.refuse(Timestamp::from_micros(now), Statuses::of(standings));
            }
            None if self.welcome(&mut table, number, (hash, now), charges, decision) => {}
            Some(Judged::NotHere) | None => {
                drop(table);
                self.check_any(charges, decision);
            }
        }
    }

    #[cold]
    fn check_any<const N: usize>(&self, charges: [&Charge<'_>; N], decision: &mut Decision) {
        *decision = self.decide_any(Operation::Check, &charges.map(|charge| *charge));
    }
}

/// Whether it is the very same key that they are counted by.
#[inline]
fn have_one_key<const N: usize>(charges: [&Charge<'_>; N]) -> bool {
    charges.iter().all(|charge| core::ptr::eq(charge.key(), charges[0].key()))
}

/// What the limits of a row say.
enum Judged<const N: usize> {
    /// All admit; the decision is made.
    Admitted,
    /// Some do not, of so many grains taken at this instant.
    Refused { now: u64, used: [u64; N] },
    /// The row counts other limits.
    NotHere,
}

/// In a row of so many words, for so many charges, both known to the compiler.
#[inline]
fn judge_in<const W: usize, const N: usize>(
    words: &mut [u64; W],
    charges: [&Charge<'_>; N],
    now: u64,
    known: &Known,
    decision: &mut Decision,
) -> Judged<N> {
    let mut row = RowMut(words);
    if !row.read().may_have(N) {
        return Judged::NotHere;
    }
    let from = row.read().at();
    if from > now {
        // The model knows whether to wait for the clock or to distrust the row.
        return Judged::NotHere;
    }
    let mut after = [0; N];
    for limit in 0..N {
        let charge = charges[limit];
        let (quota, cost) = (charge.quota(), charge.units());
        if !known.is_bucket_of(row.read().number(limit), charge.counter()) {
            return Judged::NotHere;
        }
        let used = bucket::refilled(quota, row.read().value(limit), now - from);
        if !bucket::holds(quota, used, cost) {
            return refuse_in(row, charges, now, known);
        }
        after[limit] = used + cost * quota.grain();
    }
    row.charge(now, after);
    let standings = core::array::from_fn::<_, N, _>(|i| charges[i].admitted(after[i]));
    decision.admit(Timestamp::from_micros(now), Statuses::of(standings));
    Judged::Admitted
}

/// The same where some limit does not admit.
#[cold]
fn refuse_in<const N: usize>(mut row: RowMut<'_>, charges: [&Charge<'_>; N], now: u64, known: &Known) -> Judged<N> {
    let mut used = [0; N];
    for limit in 0..N {
        let charge = charges[limit];
        if !known.is_bucket_of(row.read().number(limit), charge.counter()) {
            return Judged::NotHere;
        }
        used[limit] = bucket::refilled(charge.quota(), row.read().value(limit), now - row.read().at());
    }
    let refuses = |limit: usize| bucket::refuses(charges[limit].quota(), used[limit], charges[limit].units());
    row.mark(if (0..N).any(refuses) { Use::Refused } else { Use::Other });
    Judged::Refused { now, used }
}

impl Charge<'_> {
    /// How its limit stands when it has admitted the charge, with so many grains taken now.
    #[inline]
    pub(super) fn admitted(&self, used: u64) -> LimitStatus {
        LimitStatus {
            name: self.name(),
            limit: self.quota().capacity(),
            left: Left::of_bucket(self.quota(), used),
            taken: self.units(),
            outcome: Outcome::Allow,
            is_shadow: false,
        }
    }

    /// How it stands where some limit does not admit, of so many grains taken before.
    #[inline]
    pub(super) fn refused(&self, used: u64) -> LimitStatus {
        let (quota, cost) = (self.quota(), self.units());
        let outcome = if bucket::holds(quota, used, cost) {
            Outcome::Allow
        } else if bucket::refuses(quota, used, cost) {
            Outcome::Refuse(Duration::from_micros(bucket::until_fits(quota, used, cost)))
        } else {
            Outcome::Never
        };
        LimitStatus { outcome, taken: 0, ..self.admitted(used) }
    }
}
