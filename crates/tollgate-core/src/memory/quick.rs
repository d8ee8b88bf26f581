//! The decision that nearly all requests are: a check of plain charges by buckets, whose subjects' rows count these very
//! limits in this order. What [`decide`](crate::decide) does, done in the rows; here for one subject.

use super::Inner;
use super::known::Known;
use super::row::{RowMut, Use};
use super::sync::locked;
use super::table::{Buckets, row_of};
use crate::algorithm::bucket;
use crate::charge::{Charge, Operation};
use crate::decision::{Decision, Outcome};
use crate::standing::{Left, Standing};
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
        let judged = match &mut table.buckets {
            Buckets::Narrow(buckets) if N == 1 => {
                row_of(buckets, hash).and_then(|words| judge_in(words, charges, now, &self.known))
            }
            Buckets::Narrow(_) => None,
            Buckets::Wide(buckets) => {
                row_of(buckets, hash).and_then(|words| judge_in(words, charges, now, &self.known))
            }
        };
        // What is left is for the asker alone.
        drop(table);
        match judged {
            Some(judged) if judged.fits => {
                for (charge, used) in charges.iter().zip(judged.used) {
                    decision.tell(admitted(charge, used));
                }
                decision.admit(Timestamp::from_micros(judged.now));
            }
            Some(judged) => *decision = refused(charges, judged.used, judged.now),
            None => return false,
        }
        true
    }
}

/// What the limits of a row say.
struct Judged<const N: usize> {
    now: u64,
    fits: bool,
    /// Grains that are taken: with the charges, if they fit.
    used: [u64; N],
    /// Microseconds until all of these are back.
    reset: [u64; N],
}

/// In a row of so many words, for so many charges, both known to the compiler. `None` when it counts other limits.
#[inline]
#[expect(clippy::needless_range_loop, reason = "four lists go along with the charges")]
fn judge_in<const W: usize, const N: usize>(
    words: &mut [u64; W],
    charges: [&Charge<'_>; N],
    now: u64,
    known: &Known,
) -> Option<Judged<N>> {
    let mut row = RowMut(words);
    if row.read().summary().limits() != N {
        return None;
    }
    let from = row.read().at();
    let mut judged = Judged { now: now.max(from), fits: true, used: [0; N], reset: [0; N] };
    for limit in 0..N {
        let charge = charges[limit];
        if !known.get(row.read().number(limit))?.is_bucket_of(charge.counter()) {
            return None;
        }
        let used = bucket::refilled(charge.quota(), row.read().value(limit), judged.now - from);
        judged.used[limit] = used;
        judged.fits &= bucket::holds(charge.quota(), used, charge.units());
    }
    if !judged.fits {
        let refuses =
            |limit: usize| bucket::refuses(charges[limit].quota(), judged.used[limit], charges[limit].units());
        let use_of_it = if (0..N).any(refuses) { Use::Refused } else { Use::Other };
        row.update(from, row.read().summary().used(use_of_it));
        return Some(judged);
    }
    let (mut whole_after, mut spent) = (0, false);
    for limit in 0..N {
        let quota = charges[limit].quota();
        let used = judged.used[limit] + charges[limit].units() * quota.grain();
        row.set_value(limit, used);
        judged.used[limit] = used;
        judged.reset[limit] = bucket::reset(quota, used);
        whole_after = judged.reset[limit].max(whole_after);
        spent |= bucket::is_spent(quota, used);
    }
    row.update(judged.now, row.read().summary().whole_at(judged.now + whole_after).used(Use::Charged { spent }));
    Some(judged)
}

/// How a limit stands that admits a charge, with so many grains taken now, which are back after so many microseconds.
#[inline]
pub(super) fn admitted(charge: &Charge<'_>, used: u64) -> Standing {
    Standing {
        name: charge.name(),
        limit: charge.quota().capacity(),
        left: Left::of_bucket(charge.quota(), used),
        taken: charge.units(),
        outcome: Outcome::Allow,
        is_shadow: false,
    }
}

/// The decision where a limit refuses, of so many grains taken before.
#[cold]
pub(super) fn refused<'a>(
    charges: impl IntoIterator<Item = &'a Charge<'a>>,
    used: impl IntoIterator<Item = u64>,
    now: u64,
) -> Decision {
    let standing =
        |(charge, used): (&Charge<'_>, u64)| Standing::of_bucket(charge.name(), charge.quota(), used, charge.units());
    Decision::from_standings(Operation::Check, Timestamp::from_micros(now), charges.into_iter().zip(used).map(standing))
}
