//! Checks that admitted units fit into a bound.

use std::collections::BTreeMap;

use tower_quota_core::{Charge, ChargeMode, Decision, Entry, Key, Operation, Timestamp};

use super::shape::Shape;
use super::world::Server;

/// Where and when a store took the units of an admission.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Taken {
    pub(super) admission: usize,
    pub(super) client: usize,
    pub(super) at: Timestamp,
    pub(super) server: Server,
}

/// The units of a run, by limit and client. The common counter has the number 2.
#[derive(Debug, Default)]
pub(super) struct Ledger(BTreeMap<(usize, usize), Vec<Event>>);

#[derive(Clone, Copy, Debug)]
struct Event {
    at: Timestamp,
    admission: usize,
    server: Server,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Units of an admitted request, which must fit.
    Admitted(u64),
    /// Units that need not fit.
    Forced(u64),
    Refunded(u64),
    Renewed,
}

impl Ledger {
    /// Records the units of a decision.
    pub(super) fn record(
        &mut self,
        shape: &Shape,
        taken: Taken,
        operation: Operation,
        charges: &[Charge<'_>],
        decision: &Decision,
        at: Timestamp,
    ) {
        for (charge, status) in charges.iter().zip(decision.statuses()) {
            let is_enforced = decision.is_allowed() && !charge.is_shadow();
            let kind = match operation {
                Operation::Refund { .. } => Kind::Refunded(charge.units()),
                Operation::Renew { .. } if charge.mode() != ChargeMode::Forced => Kind::Renewed,
                Operation::Check if charge.mode() == ChargeMode::Checked && is_enforced => {
                    Kind::Admitted(status.taken)
                }
                Operation::Check if charge.mode() == ChargeMode::Checked => continue,
                Operation::Check => Kind::Forced(status.taken),
                Operation::Reset | Operation::Peek | Operation::Refuse => continue,
                // A settlement, or a hold that the store had lost.
                _ => Kind::Forced(status.taken),
            };
            let counter = shape.counter_of(charge, taken.client);
            let events = self.0.entry(counter).or_default();
            events.push(Event {
                at,
                admission: taken.admission,
                server: taken.server,
                kind,
            });
        }
    }

    /// Forgets the units that a server has lost.
    pub(super) fn forget(&mut self, is_lost: impl Fn((usize, usize), Server) -> bool) {
        for (counter, events) in &mut self.0 {
            events.retain(|event| !is_lost(*counter, event.server));
        }
    }

    /// Returns the first admission above the quota of a limit.
    pub(super) fn audit(
        &self,
        shape: &Shape,
        quotas: u64,
        excludes_forced: bool,
    ) -> Result<(), String> {
        for ((limit, _), events) in &self.0 {
            let quota = shape.limits[*limit].largest(quotas);
            let key = Key::EVERYONE;
            let charge = Charge::new("audit", &quota, &key);
            let (mut entry, mut charged) = (Entry::default(), BTreeMap::new());
            for event in events {
                // Count a refunded request as if it had never been made. Holds end with their release.
                let is_undone = !charge.is_hold() && is_refunded(events, event.admission);
                let taken_at = charged.get(&event.admission).copied();
                let taken_at = taken_at.unwrap_or(Timestamp::EPOCH);
                let (operation, units) = match event.kind {
                    Kind::Admitted(0) | Kind::Forced(0) => continue,
                    Kind::Forced(_) if excludes_forced => continue,
                    Kind::Admitted(_) | Kind::Refunded(_) if is_undone => continue,
                    Kind::Admitted(units) => (Operation::Check, units),
                    Kind::Forced(units) => (Operation::Charge, units),
                    Kind::Refunded(units) => (Operation::Refund { taken_at }, units),
                    Kind::Renewed => (Operation::Renew { taken_at }, 1),
                };
                let decision = entry.decide(operation, &[charge.cost(units)], event.at);
                if !decision.is_allowed() {
                    return Err(format!(
                        "the admitted units exceed {quota:?} at {:?}: {events:#?}",
                        event.at
                    ));
                }
                if matches!(operation, Operation::Check | Operation::Charge) {
                    charged.insert(event.admission, decision.at());
                }
            }
        }
        Ok(())
    }
}

fn is_refunded(events: &[Event], admission: usize) -> bool {
    let mut events = events.iter();
    events.any(|event| event.admission == admission && matches!(event.kind, Kind::Refunded(1..)))
}
