//! The holds of a keeper, and the calls that are due. Time is passed in.

use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};

use hashbrown::HashMap;
use smallvec::SmallVec;
use tokio::time::Instant;

use crate::charge::{Charge, Operation, OwnedCharge};
use crate::decision::Decision;
use crate::name::Name;
use crate::time::Timestamp;

/// The most calls under way. Each success doubles the number, and each failure halves it.
const MOST_CALLS: usize = 256;
/// The pause after a failure of the only call under way, and before a failed release is repeated.
const PAUSE: Duration = Duration::from_millis(500);
const MOST_OWED: usize = 10_000;

/// A hold of a keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldId(u64);

pub(super) struct Ledger {
    origin: Instant,
    holds: HashMap<u64, Held>,
    due: BTreeSet<(Instant, u64)>,
    owed: VecDeque<Owed>,
    last_id: u64,
    most_calls: usize,
    /// The keeper calls the store again from this instant on.
    resumes: Instant,
    pub(super) is_driven: bool,
    pub(super) sleeps_until: Option<Instant>,
}

struct Held {
    charge: OwnedCharge,
    taken_at: Timestamp,
    ends: Option<Instant>,
    renewed: Instant,
    /// When to call the store. Absent during a call, and after the longest hold.
    due: Option<Instant>,
    /// Whether the store has lost the units.
    is_lost: bool,
    /// Whether the work ended while the keeper took the units again.
    is_released: bool,
}

/// A release that failed.
struct Owed {
    charge: OwnedCharge,
    taken_at: Timestamp,
    due: Instant,
    until: Instant,
}

/// What the task does next.
pub(super) enum Step {
    Call(Call),
    Outlived(Name),
    /// Waits for an answer, or for the next call.
    Wait(Option<Instant>),
    End,
}

/// A call of the store.
pub(super) struct Call {
    pub(super) operation: Operation,
    pub(super) charges: Vec<OwnedCharge>,
    sent: Instant,
    purpose: Purpose,
}

enum Purpose {
    /// Renews these holds, or takes one again.
    Keep(Vec<u64>),
    Release {
        until: Instant,
    },
}

impl Held {
    fn ttl(&self) -> Duration {
        self.charge.as_charge().quota().period()
    }

    fn name(&self) -> Name {
        self.charge.name()
    }

    fn operation(&self) -> Operation {
        match self.is_lost {
            // The new instant of the units is the instant of the answer.
            true => Operation::Charge,
            false => Operation::Renew {
                taken_at: self.taken_at,
            },
        }
    }

    /// Returns whether the longest hold ends before the units expire.
    fn is_over(&self) -> bool {
        let expires = self.renewed + self.ttl();
        self.ends.is_some_and(|ends| expires >= ends)
    }
}

impl Call {
    pub(super) fn timeout(&self) -> Duration {
        let ttls = self.charges.iter();
        let ttls = ttls.map(|charge| charge.as_charge().quota().period());
        ttls.min().unwrap_or_default() / 3
    }
}

impl Ledger {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            origin: now,
            holds: HashMap::new(),
            due: BTreeSet::new(),
            owed: VecDeque::new(),
            last_id: 0,
            most_calls: MOST_CALLS,
            resumes: now,
            is_driven: false,
            sleeps_until: None,
        }
    }

    pub(super) fn hold(
        &mut self,
        charge: OwnedCharge,
        taken_at: Timestamp,
        longest: Option<Duration>,
        now: Instant,
    ) -> (HoldId, Instant) {
        self.last_id += 1;
        let id = self.last_id;
        let held = Held {
            charge,
            taken_at,
            ends: longest.and_then(|longest| now.checked_add(longest)),
            renewed: now,
            due: None,
            is_lost: false,
            is_released: false,
        };
        // Renewing after a third of the time leaves room to repeat a failed renewal.
        let due = self.tick(now, held.ttl() / 3, held.ttl());
        self.holds.insert(id, held);
        self.call_at(id, due);
        (HoldId(id), due)
    }

    pub(super) fn taken_at(&self, HoldId(id): HoldId) -> Option<Timestamp> {
        let held = self.holds.get(&id)?;
        (!held.is_lost).then_some(held.taken_at)
    }

    pub(super) fn release(&mut self, HoldId(id): HoldId) -> Option<Timestamp> {
        let held = self.holds.get_mut(&id)?;
        let is_taken_again = held.is_lost && held.due.is_none();
        if is_taken_again {
            // The answer has the instant of the units, so the release follows the answer.
            held.is_released = true;
            return None;
        }
        let held = self.holds.remove(&id)?;
        if let Some(due) = held.due {
            self.due.remove(&(due, id));
        }
        Some(held.taken_at)
    }

    /// Keeps a failed release. Returns when to repeat the release, and whether the oldest one was dropped.
    pub(super) fn owe(
        &mut self,
        charge: OwnedCharge,
        taken_at: Timestamp,
        now: Instant,
    ) -> (Instant, bool) {
        // The last renewal was earlier, so the hold expires earlier.
        let until = now + charge.as_charge().quota().period();
        let due = now + PAUSE;
        let is_full = self.push_owed(Owed {
            charge,
            taken_at,
            due,
            until,
        });
        (due, is_full)
    }

    fn push_owed(&mut self, owed: Owed) -> bool {
        let is_full = self.owed.len() >= MOST_OWED;
        if is_full {
            self.owed.pop_front();
        }
        self.owed.push_back(owed);
        is_full
    }

    /// Returns the next step of the task, which has this number of calls under way.
    pub(super) fn step(&mut self, now: Instant, under_way: usize) -> Step {
        let is_busy = under_way >= self.most_calls;
        if !is_busy
            && now >= self.resumes
            && let Some(step) = self.next_call(now)
        {
            return step;
        }
        let wakes_at = if is_busy { None } else { self.wakes_at() };
        if under_way == 0 && wakes_at.is_none() {
            self.is_driven = false;
            return Step::End;
        }
        self.sleeps_until = wakes_at;
        Step::Wait(wakes_at)
    }

    fn next_call(&mut self, now: Instant) -> Option<Step> {
        while self.owed.front().is_some_and(|owed| owed.due <= now) {
            if let Some(owed) = self.owed.pop_front().filter(|owed| now < owed.until) {
                return Some(Step::Call(owed.into_call(now)));
            }
        }
        let (_, id) = *self.due.first().filter(|(due, _)| *due <= now)?;
        let held = self.pop_due(id)?;
        let (operation, charge, limit) = (held.operation(), held.charge.clone(), held.name());
        if held.is_over() {
            return Some(Step::Outlived(limit));
        }
        let (mut charges, mut ids) = (vec![charge], vec![id]);
        while operation != Operation::Charge && charges.len() < Charge::MOST {
            // The limits of one key and request have one instant.
            let Some(&(_, id)) = self.due.first().filter(|(due, _)| *due <= now) else {
                break;
            };
            let first: &OwnedCharge = &charges[0];
            let is_same = |held: &&Held| {
                let is_same_key = first.as_charge().key() == held.charge.as_charge().key();
                held.operation() == operation && is_same_key && !held.is_over()
            };
            let Some(held) = self.holds.get(&id).filter(is_same) else {
                break;
            };
            charges.push(held.charge.clone());
            ids.push(id);
            self.pop_due(id);
        }
        Some(Step::Call(Call {
            operation,
            charges,
            sent: now,
            purpose: Purpose::Keep(ids),
        }))
    }

    fn wakes_at(&self) -> Option<Instant> {
        let owed = self.owed.front().map(|owed| owed.due);
        let held = self.due.first().map(|(due, _)| *due);
        let next = owed.into_iter().chain(held).min()?;
        Some(next.max(self.resumes))
    }

    /// Records the answer of a call. Returns the holds that the store has lost.
    pub(super) fn answered<E>(
        &mut self,
        call: Call,
        answer: &Result<Decision, E>,
        now: Instant,
    ) -> SmallVec<[(HoldId, Name); 1]> {
        self.adapt(answer.is_ok(), now);
        let mut lost = SmallVec::new();
        let ids = match call.purpose {
            Purpose::Keep(ids) => ids,
            Purpose::Release { until } => {
                if let (Err(_), Operation::Refund { taken_at }) = (answer, call.operation) {
                    for charge in call.charges {
                        self.push_owed(Owed {
                            charge,
                            taken_at,
                            due: now + PAUSE,
                            until,
                        });
                    }
                }
                return lost;
            }
        };
        for (position, id) in ids.into_iter().enumerate() {
            // A released hold has left.
            let Some(held) = self.holds.get_mut(&id) else {
                continue;
            };
            let decision = answer.as_ref().ok();
            let taken = decision
                .and_then(|decision| decision.statuses().get(position))
                .map(|status| status.taken);
            let is_kept = taken.is_some_and(|taken| taken > 0);
            if let (true, true, Some(decision)) = (is_kept, held.is_lost, decision) {
                held.taken_at = decision.at();
                held.is_lost = false;
            }
            let ttl = held.ttl();
            if held.is_released {
                if let Some(held) = self.holds.remove(&id).filter(|_| is_kept) {
                    self.push_owed(Owed {
                        charge: held.charge,
                        taken_at: held.taken_at,
                        due: now,
                        until: now + ttl,
                    });
                }
                continue;
            }
            let due = if is_kept {
                held.renewed = call.sent;
                self.tick(call.sent, ttl / 3, ttl)
            } else if taken == Some(0) && !held.is_lost {
                held.is_lost = true;
                lost.push((HoldId(id), held.name()));
                now
            } else {
                self.tick(now, ttl / 6, ttl)
            };
            self.call_at(id, due);
        }
        lost
    }

    /// Makes the calls of a task due again that ended with its runtime.
    pub(super) fn interrupt(&mut self, now: Instant) {
        self.is_driven = false;
        self.holds.retain(|_, held| !held.is_released);
        let ids: Vec<u64> = self.holds.keys().copied().collect();
        for id in ids {
            let is_called = self.holds.get(&id).is_some_and(|held| held.due.is_none());
            if is_called {
                self.call_at(id, now);
            }
        }
    }

    fn adapt(&mut self, is_success: bool, now: Instant) {
        if is_success {
            self.most_calls = (2 * self.most_calls).min(MOST_CALLS);
            return;
        }
        self.most_calls = (self.most_calls / 2).max(1);
        if self.most_calls == 1 {
            // One call finds out whether an outage is over.
            self.resumes = now + PAUSE;
        }
    }

    fn pop_due(&mut self, id: u64) -> Option<&mut Held> {
        let held = self.holds.get_mut(&id)?;
        if let Some(due) = held.due.take() {
            self.due.remove(&(due, id));
        }
        Some(held)
    }

    fn call_at(&mut self, id: u64, due: Instant) {
        if let Some(held) = self.holds.get_mut(&id) {
            held.due = Some(due);
            self.due.insert((due, id));
        }
    }

    /// Returns the last tick before the end of a pause. A `ttl` has twelve ticks, so that renewals leave together.
    fn tick(&self, start: Instant, pause: Duration, ttl: Duration) -> Instant {
        let end = start + pause;
        let (tick, since) = (
            (ttl / 12).as_micros(),
            end.duration_since(self.origin).as_micros(),
        );
        let late = u64::try_from(since % tick.max(1)).unwrap_or_default();
        end - Duration::from_micros(late)
    }
}

impl Owed {
    fn into_call(self, now: Instant) -> Call {
        Call {
            operation: Operation::Refund {
                taken_at: self.taken_at,
            },
            charges: vec![self.charge],
            sent: now,
            purpose: Purpose::Release { until: self.until },
        }
    }
}
