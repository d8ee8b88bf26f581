//! The same for several subjects, such as a client and everybody.

use smallvec::SmallVec;

use super::Inner;
use super::row::{RowMut, Use};
use super::sync::{MutexGuard, locked};
use super::table::Table;
use crate::algorithm::bucket;
use crate::charge::{Charge, Operation};
use crate::decision::Decision;
use crate::time::Timestamp;

/// Charges that are decided here at most.
const MOST: usize = 8;

/// Where a charge's subject is, and what its limit has counted.
#[derive(Clone, Copy, Default)]
struct Seat {
    hash: u64,
    table: usize,
    /// Which of the guards holds the table.
    guard: usize,
    position: usize,
    /// The first charge of this subject.
    first: usize,
    /// How many charges of this subject come before.
    limit: usize,
    used: u64,
}

/// What the charges of a subject have come to.
#[derive(Clone, Copy, Default)]
struct Sum {
    charges: usize,
    refuses: bool,
}

/// The tables of a request, each locked.
type Guards<'a> = SmallVec<[MutexGuard<'a, Table>; 4]>;

impl Inner {
    /// Checks charges of several subjects.
    #[inline(never)]
    pub(super) fn check_several(&self, charges: &[Charge<'_>], decision: &mut Decision) {
        if !self.check_in_rows(charges, decision) {
            *decision = self.decide_any(Operation::Check, charges);
        }
    }

    /// Makes the decision on plain charges, or does nothing at all when some row counts other limits or is missing.
    fn check_in_rows(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        if charges.len() > MOST || !charges.iter().all(Charge::is_plain) {
            return false;
        }
        let mut seats = [Seat::default(); MOST];
        let mut sums = [Sum::default(); MOST];
        for (i, charge) in charges.iter().enumerate() {
            let hash = self.hash(charge.key());
            let first = seats[..i].iter().position(|seat| seat.hash == hash).unwrap_or(i);
            let table = self.table_of(hash);
            seats[i] = Seat { hash, table, first, limit: sums[first].charges, ..Seat::default() };
            sums[first].charges += 1;
        }
        let seats = &mut seats[..charges.len()];
        let mut guards = Guards::new();
        let now = self.time.now().as_micros();
        self.lock_all(seats, &mut guards);

        for seat in &mut *seats {
            let Some(position) = guards[seat.guard].find(seat.hash) else { return false };
            seat.position = position;
            if row(&mut guards, seat).read().at() > now {
                return false;
            }
        }
        let mut fits = true;
        for (seat, charge) in seats.iter_mut().zip(charges) {
            let row = row(&mut guards, seat);
            let row = row.read();
            let counts_these = row.limits() == sums[seat.first].charges
                && self.known.is_bucket_of(row.number(seat.limit), charge.counter());
            if !counts_these {
                return false;
            }
            seat.used = bucket::refilled(charge.quota(), row.value(seat.limit), now - row.at());
            sums[seat.first].refuses |= bucket::refuses(charge.quota(), seat.used, charge.units());
            fits &= bucket::holds(charge.quota(), seat.used, charge.units());
        }

        if fits {
            for (seat, charge) in seats.iter_mut().zip(charges) {
                seat.used += charge.units() * charge.quota().grain();
                row(&mut guards, seat).set_value(seat.limit, seat.used);
            }
            let standings = seats.iter().zip(charges).map(|(seat, charge)| charge.admitted(seat.used));
            decision.admit(Timestamp::from_micros(now), standings.collect());
        } else {
            let standings = seats.iter().zip(charges).map(|(seat, charge)| charge.refused(seat.used));
            decision.refuse(Timestamp::from_micros(now), standings.collect());
        }
        for seat in seats.iter().filter(|seat| seat.limit == 0) {
            let sum = &sums[seat.first];
            let mut row = row(&mut guards, seat);
            if fits {
                row.set_at(now);
                row.mark(Use::Charged);
            } else if sum.refuses {
                row.mark(Use::Refused);
            }
        }
        true
    }

    /// Locks the tables of all seats, each once, in the order of the tables: so two requests never wait for each other.
    fn lock_all<'a>(&'a self, seats: &mut [Seat], guards: &mut Guards<'a>) {
        let mut next = seats.iter().map(|seat| seat.table).min();
        while let Some(table) = next {
            seats.iter_mut().filter(|seat| seat.table == table).for_each(|seat| seat.guard = guards.len());
            guards.push(locked(&self.tables[table].0));
            next = seats.iter().map(|seat| seat.table).filter(|&other| other > table).min();
        }
    }
}

/// The row of a seat.
fn row<'a>(guards: &'a mut Guards<'_>, seat: &Seat) -> RowMut<'a> {
    guards[seat.guard].row_mut(seat.position)
}
