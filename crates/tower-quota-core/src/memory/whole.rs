//! Any decision: over several subjects, by every algorithm, of every operation. The model decides; here its subjects are
//! taken out of their rows and put back.

use smallvec::SmallVec;

use super::Inner;
use super::row::Use;
use super::sync::{MutexGuard, locked};
use super::table::Table;
use crate::charge::{Charge, Operation};
use crate::decide::decide;
use crate::decision::Decision;
use crate::entry::Entry;
use crate::outcome::Outcome;
use crate::status::LimitStatus;

/// A subject of a request, out of its table.
struct Guest {
    hash: u64,
    /// Which of the request's guards holds its table.
    guard: usize,
    /// Whether it has a row.
    is_known: bool,
    subject: Entry,
}

/// The guards a request holds, in the order of their tables.
type Guards<'a> = SmallVec<[(usize, MutexGuard<'a, Table>); 2]>;

impl Inner {
    #[inline(never)] // Its stack is large, and seldom needed.
    pub(super) fn decide_any(&self, operation: Operation, charges: &[Charge<'_>]) -> Decision {
        let hashes: SmallVec<[u64; 4]> = charges.iter().map(|charge| self.hash(charge.key())).collect();
        let (unique, subject_of) = grouped(&hashes);

        // Locks are taken in the order of the tables, so two requests never wait for each other.
        let mut guards = self.lock(&unique);
        let now = self.time.now();
        let mut guests: SmallVec<[Guest; 2]> = unique.iter().map(|&hash| self.guest(hash, &mut guards)).collect();
        for (number, guest) in guests.iter_mut().enumerate().filter(|(_, guest)| !guest.is_known) {
            if guards[guest.guard].1.remembers(guest.hash, now) {
                let own = charges.iter().zip(&subject_of).filter(|(_, subject)| **subject == number);
                for (charge, _) in own {
                    let all = [charge.cost(charge.quota().capacity())];
                    guest.subject.decide(Operation::Charge, &all, now);
                }
            }
        }

        let mut subjects: SmallVec<[&mut Entry; 2]> = guests.iter_mut().map(|guest| &mut guest.subject).collect();
        let decision = decide(operation, charges, now, &mut subjects, |charge| subject_of[charge]);
        drop(subjects);
        for (number, guest) in guests.into_iter().enumerate() {
            let own = decision.statuses().iter().zip(&subject_of).filter(|(_, subject)| **subject == number);
            let use_of_it = use_of(&decision, own.map(|(standing, _)| standing));
            self.check_in(guest, use_of_it, &decision, &unique, &mut guards);
        }
        decision
    }

    fn guest(&self, hash: u64, guards: &mut Guards<'_>) -> Guest {
        // Every hash's table was locked; were it not, the last guard would be a wrong table but never out of bounds.
        let table = self.table_of(hash);
        let guard = guards.iter().position(|(locked, _)| *locked == table).unwrap_or(0);
        let table = &mut guards[guard].1;
        let subject = table.find(hash).map(|position| table.check_out(position, &self.known));
        Guest { hash, guard, is_known: subject.is_some(), subject: subject.unwrap_or_default() }
    }

    /// Puts a subject back; one with nothing to remember gives its place up.
    fn check_in(&self, guest: Guest, use_of_it: Use, decision: &Decision, together: &[u64], guards: &mut Guards<'_>) {
        let Guest { hash, guard, is_known, subject } = guest;
        let (number, table) = &mut guards[guard];
        let room = self.room_of(*number);
        let position = if is_known { table.find(hash) } else { None };
        match position {
            Some(position) if subject.is_empty() => table.forget(position, room),
            None if subject.is_empty() => {}
            Some(position) => table.check_in(position, subject, use_of_it, (room, &self.known)),
            None => match table.place(hash, decision.at(), (room, &self.known), together) {
                Some(position) => table.check_in(position, subject, use_of_it, (room, &self.known)),
                // It has taken something, and nobody knows what: should it come back, it has taken all.
                None => {
                    room.count_eviction();
                    table.remember(hash, subject.full_at(), decision.at(), room);
                }
            },
        }
        self.hints[*number].update(table);
    }

    fn lock(&self, hashes: &[u64]) -> Guards<'_> {
        let mut tables: SmallVec<[usize; 2]> = hashes.iter().map(|&hash| self.table_of(hash)).collect();
        tables.sort_unstable();
        tables.dedup();
        tables.into_iter().map(|table| (table, locked(&self.tables[table].0))).collect()
    }
}

/// What a decision means for one of its subjects.
fn use_of<'a>(decision: &Decision, mut own: impl Iterator<Item = &'a LimitStatus>) -> Use {
    if decision.is_allowed() {
        return Use::Charged;
    }
    match own.any(|standing| !standing.is_shadow && matches!(standing.outcome, Outcome::Refuse(_))) {
        true => Use::Refused,
        false => Use::Other,
    }
}

/// The distinct hashes, and for each charge the position of its own among them.
fn grouped(hashes: &[u64]) -> (SmallVec<[u64; 2]>, SmallVec<[usize; 4]>) {
    let mut unique: SmallVec<[u64; 2]> = SmallVec::new();
    let positions = hashes
        .iter()
        .map(|hash| {
            unique.iter().position(|known| known == hash).unwrap_or_else(|| {
                unique.push(*hash);
                unique.len() - 1
            })
        })
        .collect();
    (unique, positions)
}
