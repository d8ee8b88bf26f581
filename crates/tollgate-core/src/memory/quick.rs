//! The decision that nearly all requests are: a check of plain charges by buckets, all for one subject, whose row counts
//! these very limits in this order. What [`decide`](crate::decide) does, done in the row.

use super::Inner;
use core::time::Duration;

use super::row::{MOST_LIMITS, Use};
use super::sync::locked;
use crate::algorithm::bucket;
use crate::charge::{Charge, Operation};
use crate::decision::{Decision, Outcome, Standing, Standings};
use crate::time::Timestamp;

impl Inner {
    /// The decision, or `None` when it is another kind of request, and nothing was done.
    #[inline]
    pub(super) fn decide_quickly(&self, operation: Operation, charges: &[Charge<'_>]) -> Option<Decision> {
        let (first, others) = charges.split_first()?;
        let is_plain = |charge: &Charge<'_>| charge.is_plain() && core::ptr::eq(charge.key(), first.key());
        if operation != Operation::Check
            || others.len() >= MOST_LIMITS
            || !first.is_plain()
            || !others.iter().all(is_plain)
        {
            return None;
        }
        let hash = self.hash(first.key());
        let now = self.clock.now().as_micros();
        let mut table = locked(&self.tables[self.table_of(hash)].0);
        let position = table.find(hash)?;
        let mut row = table.row_mut(position);
        if row.read().summary().limits() != charges.len() {
            return None;
        }
        let from = row.read().at();
        let now = now.max(from);

        let mut used = [0; MOST_LIMITS];
        let mut fits = true;
        for (limit, (charge, used)) in charges.iter().zip(&mut used).enumerate() {
            if !self.known.get(row.read().number(limit))?.is(charge.counter()) {
                return None;
            }
            *used = bucket::refilled(charge.quota(), row.read().value(limit), now - from);
            fits &= bucket::holds(charge.quota(), *used, charge.units());
        }
        if !fits {
            row.update(from, row.read().summary().used(Use::Refused));
            drop(table);
            return Some(refused(charges, used, now));
        }
        let (mut whole_after, mut spent) = (0, false);
        let mut standings = Standings::new();
        for (limit, (charge, used)) in charges.iter().zip(used).enumerate() {
            let used = bucket::taken(charge.quota(), used, charge.units());
            row.set_value(limit, used);
            let (remaining, reset) = bucket::left(charge.quota(), used);
            whole_after = reset.max(whole_after);
            spent |= remaining == 0;
            standings.push(Standing {
                name: charge.name(),
                limit: charge.quota().capacity(),
                remaining,
                reset_after: Duration::from_micros(reset),
                outcome: Outcome::Allow,
                taken: charge.units(),
                is_shadow: false,
            });
        }
        let summary = row.read().summary().whole_at(now + whole_after).used(Use::Charged { spent });
        row.update(now, summary);
        Some(Decision::admitted(Timestamp::from_micros(now), standings))
    }
}

#[cold]
fn refused(charges: &[Charge<'_>], used: [u64; MOST_LIMITS], now: u64) -> Decision {
    let standing =
        |(charge, used): (&Charge<'_>, u64)| Standing::of_bucket(charge.name(), charge.quota(), used, charge.units());
    Decision::from_standings(Operation::Check, Timestamp::from_micros(now), charges.iter().zip(used).map(standing))
}
