//! A check of somebody who has no row yet, as a flood of made-up keys brings in great numbers: what the model decides of a
//! fresh subject, put into the row at once.

use super::Inner;
use super::known::Counted;
use super::row::{Count, Use};
use super::table::Table;
use crate::algorithm::bucket;
use crate::charge::Charge;
use crate::decision::Decision;
use crate::time::Timestamp;

impl Inner {
    /// Makes the decision, or does nothing when the model has to: for whoever may have been limited when he had to go, is
    /// not admitted, or fits into no row of this table as it is.
    pub(super) fn welcome<const N: usize>(
        &self,
        table: &mut Table,
        number: usize,
        (hash, now): (u64, u64),
        charges: [&Charge<'_>; N],
        decision: &mut Decision,
    ) -> bool {
        let at = Timestamp::from_micros(now);
        let fits = |charge: &&Charge<'_>| bucket::holds(charge.quota(), 0, charge.units());
        if !charges.iter().all(fits) || table.remembers(hash, at) {
            return false;
        }
        let mut counts = [Count::default(); N];
        for (position, charge) in charges.iter().enumerate() {
            let counted = Counted { limit: charge.counter().id, quota: *charge.quota() };
            let Some(number) = self.known.number(&counted) else { return false };
            if counts[..position].iter().any(|count| count.number == number) {
                // Twice the same limit, which nobody should ask for: the model counts both together.
                return false;
            }
            counts[position] = Count { number, value: charge.units() * charge.quota().grain() };
        }
        if !table.is_wide_enough(&counts) {
            return false;
        }
        let Some(position) = table.place(hash, at, (self.room_of(number), &self.known), &[]) else { return false };
        let mut row = table.row_mut(position);
        row.set_at(now);
        row.mark(Use::Charged);
        row.set_counts(&counts);
        self.hints[number].update(table);
        decision.admit(at, counts.iter().zip(charges).map(|(count, charge)| charge.admitted(count.value)).collect());
        true
    }
}
