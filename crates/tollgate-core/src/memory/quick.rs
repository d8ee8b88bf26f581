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
use crate::decision::{Decision, Outcome, Standing};
use crate::time::Timestamp;

impl Inner {
    /// Makes the decision, or does nothing at all when it is another one.
    pub(super) fn decide_quickly(&self, operation: Operation, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        if operation != Operation::Check || !charges.iter().all(Charge::is_plain) {
            return false;
        }
        // Of a number that is known to the compiler.
        match charges {
            [one] => self.decide_for_one([one], decision),
            [first, ..] if charges.iter().any(|charge| !core::ptr::eq(charge.key(), first.key())) => {
                self.decide_for_several(charges, decision)
            }
            [one, two] => self.decide_for_one([one, two], decision),
            [one, two, three] => self.decide_for_one([one, two, three], decision),
            [one, two, three, four] => self.decide_for_one([one, two, three, four], decision),
            _ => false,
        }
    }

    fn decide_for_one<const N: usize>(&self, charges: [&Charge<'_>; N], decision: &mut Decision) -> bool {
        let hash = self.hash(charges[0].key());
        let now = self.time.now().as_micros();
        let mut table = locked(&self.tables[self.table_of(hash)].0);
        match &mut table.buckets {
            Buckets::Narrow(buckets) if N == 1 => {
                row_of(buckets, hash).is_some_and(|words| decide_in(words, charges, now, &self.known, decision))
            }
            Buckets::Narrow(_) => false,
            Buckets::Wide(buckets) => {
                row_of(buckets, hash).is_some_and(|words| decide_in(words, charges, now, &self.known, decision))
            }
        }
    }
}

/// In a row of so many words, for so many charges, both known to the compiler.
#[inline]
fn decide_in<const W: usize, const N: usize>(
    words: &mut [u64; W],
    charges: [&Charge<'_>; N],
    now: u64,
    known: &Known,
    decision: &mut Decision,
) -> bool {
    let mut row = RowMut(words);
    if row.read().summary().limits() != N {
        return false;
    }
    let from = row.read().at();
    let now = now.max(from);
    let mut used = [0; N];
    let mut fits = true;
    for limit in 0..N {
        let charge = charges[limit];
        if !known.get(row.read().number(limit)).is_some_and(|known| known.is_bucket_of(charge.counter())) {
            return false;
        }
        used[limit] = bucket::refilled(charge.quota(), row.read().value(limit), now - from);
        fits &= bucket::holds(charge.quota(), used[limit], charge.units());
    }
    if !fits {
        row.update(from, row.read().summary().used(Use::Refused));
        *decision = refused(charges, &used, now);
        return true;
    }
    let (mut whole_after, mut spent) = (0, false);
    for limit in 0..N {
        let charge = charges[limit];
        let used = used[limit] + charge.units() * charge.quota().grain();
        row.set_value(limit, used);
        let (standing, reset) = admitted(charge, used);
        whole_after = reset.max(whole_after);
        spent |= standing.remaining == 0;
        decision.tell(standing);
    }
    row.update(now, row.read().summary().whole_at(now + whole_after).used(Use::Charged { spent }));
    decision.admit(Timestamp::from_micros(now));
    true
}

/// How a limit stands that admits a charge, with so many grains taken now, and the microseconds until all are back.
#[inline]
pub(super) fn admitted(charge: &Charge<'_>, used: u64) -> (Standing, u64) {
    let (remaining, reset) = bucket::left(charge.quota(), used);
    let standing = Standing {
        name: charge.name(),
        limit: charge.quota().capacity(),
        remaining,
        taken: charge.units(),
        reset_after: Duration::from_micros(reset),
        outcome: Outcome::Allow,
        is_shadow: false,
    };
    (standing, reset)
}

/// The decision where a limit refuses, of so many grains taken before.
#[cold]
pub(super) fn refused<'a>(charges: impl IntoIterator<Item = &'a Charge<'a>>, used: &[u64], now: u64) -> Decision {
    let standing =
        |(charge, used): (&Charge<'_>, &u64)| Standing::of_bucket(charge.name(), charge.quota(), *used, charge.units());
    Decision::from_standings(Operation::Check, Timestamp::from_micros(now), charges.into_iter().zip(used).map(standing))
}
