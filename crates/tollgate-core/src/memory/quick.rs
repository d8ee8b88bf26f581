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
use crate::standings::Standings;
use crate::time::Timestamp;

impl Inner {
    /// Makes a decision in its place, which is blank.
    #[inline]
    pub(super) fn decide(&self, operation: Operation, charges: &[Charge<'_>], decision: &mut Decision) {
        // Of a number that is known to the compiler.
        match (operation, charges) {
            (Operation::Check, [one]) => self.check_one([one], decision),
            (Operation::Check, [_, _, ..]) => self.check_more(charges, decision),
            _ => *decision = self.decide_any(operation, charges),
        }
    }

    #[inline(never)]
    fn check_more(&self, charges: &[Charge<'_>], decision: &mut Decision) {
        match charges {
            [first, ..] if charges.iter().any(|charge| !core::ptr::eq(charge.key(), first.key())) => {
                self.check_several(charges, decision);
            }
            [one, two] => self.check_one([one, two], decision),
            [one, two, three] => self.check_one([one, two, three], decision),
            [one, two, three, four] => self.check_one([one, two, three, four], decision),
            _ => *decision = self.decide_any(Operation::Check, charges),
        }
    }

    /// Checks so many charges of one subject.
    #[inline(never)] // Each for itself: together they would be short of registers.
    fn check_one<const N: usize>(&self, charges: [&Charge<'_>; N], decision: &mut Decision) {
        if !charges.iter().all(|charge| charge.is_plain()) {
            return self.check_any(charges, decision);
        }
        let hash = self.hash(charges[0].key());
        let now = self.time.now().as_micros();
        let mut table = locked(&self.tables[self.table_of(hash)].0);
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
                *decision = refused(charges, used, now);
            }
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
#[expect(clippy::needless_range_loop, reason = "the row's limits go along with the charges")]
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
    let now = now.max(from);
    let (mut used, mut fits) = ([0; N], true);
    for limit in 0..N {
        let charge = charges[limit];
        if !known.get(row.read().number(limit)).is_some_and(|counted| counted.is_bucket_of(charge.counter())) {
            return Judged::NotHere;
        }
        used[limit] = bucket::refilled(charge.quota(), row.read().value(limit), now - from);
        fits &= bucket::holds(charge.quota(), used[limit], charge.units());
    }
    if !fits {
        let refuses = |limit: usize| bucket::refuses(charges[limit].quota(), used[limit], charges[limit].units());
        let use_of_it = if (0..N).any(refuses) { Use::Refused } else { Use::Other };
        row.mark(use_of_it);
        return Judged::Refused { now, used };
    }
    let after: [u64; N] = core::array::from_fn(|i| used[i] + charges[i].units() * charges[i].quota().grain());
    let spent = (0..N).any(|i| bucket::is_spent(charges[i].quota(), after[i]));
    row.charge(now, after, spent);
    let standings = core::array::from_fn::<_, N, _>(|i| admitted(charges[i], after[i]));
    decision.admit(Timestamp::from_micros(now), Standings::of(standings));
    Judged::Admitted
}

/// How a limit stands that admits a charge, with so many grains taken now.
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
