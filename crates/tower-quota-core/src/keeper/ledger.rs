//! The holds of a keeper, and the calls that are due. Time is passed in.

use core::time::Duration;
use std::collections::BTreeSet;

use hashbrown::HashMap;
use smallvec::SmallVec;
use tokio::time::Instant;

use crate::charge::{Charge, ChargeMode, Operation, OwnedCharge};
use crate::decision::Decision;
use crate::name::Name;
use crate::time::Timestamp;

/// The most calls under way. Each success doubles the number, and each failure halves it.
const MOST_CALLS: usize = 256;
/// The pause after a failure of the only call under way, and before a failed release is repeated.
const PAUSE: Duration = Duration::from_millis(500);
const MOST_FAILED_RELEASES: usize = 10_000;

/// A hold of a keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldId(u64);

pub(super) struct Ledger {
    origin: Instant,
    holds: HashMap<u64, Held>,
    due: BTreeSet<(Instant, u64)>,
    due_releases: BTreeSet<(Instant, u64)>,
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
    longest: Option<Duration>,
    /// The end of the longest hold, or of the repeated release.
    ends: Option<Instant>,
    renewed: Instant,
    next: NextCall,
    /// When to call the store. Absent during a call, and after the longest hold.
    due: Option<Instant>,
    is_called: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NextCall {
    Renew,
    /// The store has lost the units.
    TakeAgain,
    /// An earlier release has failed, or the work ended while the keeper took the units again.
    Release,
}

/// What the task does next.
pub(super) enum Step {
    Call(Call),
    Outlived(Name, Duration),
    /// Waits for an answer, or for the next call.
    Wait(Option<Instant>),
    End,
}

/// A call of the store.
pub(super) struct Call {
    pub(super) operation: Operation,
    pub(super) charges: Vec<OwnedCharge>,
    ids: Vec<u64>,
    sent: Instant,
}

impl Held {
    fn new(
        charge: OwnedCharge,
        taken_at: Timestamp,
        next: NextCall,
        longest: Option<Duration>,
        now: Instant,
    ) -> Self {
        Self {
            charge,
            taken_at,
            longest,
            ends: longest.and_then(|longest| now.checked_add(longest)),
            renewed: now,
            next,
            due: None,
            is_called: false,
        }
    }

    fn ttl(&self) -> Duration {
        self.charge.as_charge().quota().period()
    }

    fn name(&self) -> Name {
        self.charge.name()
    }

    fn operation(&self) -> Operation {
        let taken_at = self.taken_at;
        match self.next {
            NextCall::Renew | NextCall::TakeAgain => Operation::Renew { taken_at },
            NextCall::Release => Operation::Refund { taken_at },
        }
    }

    /// Returns the charge of the next call. Only a forced renewal takes lost units again.
    fn charge(&self) -> OwnedCharge {
        let mode = match self.next {
            NextCall::TakeAgain => ChargeMode::Forced,
            NextCall::Renew | NextCall::Release => ChargeMode::Checked,
        };
        OwnedCharge::from(&self.charge.as_charge().in_mode(mode))
    }

    /// Returns whether the longest hold ends before the units expire.
    fn is_over(&self, now: Instant) -> bool {
        let expires = now.max(self.renewed + self.ttl());
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
            due_releases: BTreeSet::new(),
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
    ) -> HoldId {
        let held = Held::new(charge, taken_at, NextCall::Renew, longest, now);
        // Renewing after a third of the time leaves room to repeat a failed renewal.
        let due = self.tick(now, held.ttl() / 3, held.ttl());
        self.insert(held, due)
    }

    fn insert(&mut self, held: Held, due: Instant) -> HoldId {
        self.last_id += 1;
        self.holds.insert(self.last_id, held);
        self.call_at(self.last_id, due);
        HoldId(self.last_id)
    }

    pub(super) fn taken_at(&self, HoldId(id): HoldId) -> Option<Timestamp> {
        self.holds.get(&id).map(|held| held.taken_at)
    }

    pub(super) fn release(&mut self, HoldId(id): HoldId, now: Instant) -> Option<Timestamp> {
        let held = self.holds.get_mut(&id)?;
        if held.next == NextCall::TakeAgain && held.is_called {
            // If the call arrived after a release, the units would stay, so the release follows the answer.
            held.next = NextCall::Release;
            // The call lasts at most a third of the `ttl`.
            held.ends = Some(now + 2 * held.ttl());
            return None;
        }
        let held = self.holds.remove(&id)?;
        if let Some(due) = held.due {
            self.due.remove(&(due, id));
        }
        Some(held.taken_at)
    }

    /// Keeps a failed release. Returns whether the oldest one was dropped.
    pub(super) fn repeat_release(
        &mut self,
        charge: OwnedCharge,
        taken_at: Timestamp,
        now: Instant,
    ) -> bool {
        let is_full = self.due_releases.len() >= MOST_FAILED_RELEASES;
        if is_full && let Some((_, oldest)) = self.due_releases.pop_first() {
            self.holds.remove(&oldest);
        }
        // The last renewal was earlier, so the hold expires earlier.
        let longest = Some(charge.as_charge().quota().period());
        let held = Held::new(charge, taken_at, NextCall::Release, longest, now);
        self.insert(held, now + PAUSE);
        is_full
    }

    /// Returns the next step of the task, which has this number of calls under way.
    pub(super) fn step(&mut self, now: Instant, under_way: usize) -> Step {
        let is_busy = under_way >= self.most_calls;
        if !is_busy
            && now >= self.resumes
            && let Some(step) = self.next_due(now)
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

    /// Renews before releasing, so that failing releases delay no renewal.
    fn next_due(&mut self, now: Instant) -> Option<Step> {
        while let Some(id) = first_due(&self.due, now) {
            let held = self.pop_due(id)?;
            if !held.is_over(now) {
                return Some(Step::Call(self.call(id, now)?));
            }
            match (held.ends, held.longest) {
                (Some(ends), _) if now < ends => self.call_at(id, ends),
                (_, Some(longest)) => return Some(Step::Outlived(held.name(), longest)),
                _ => {}
            }
        }
        while let Some(id) = first_due(&self.due_releases, now) {
            let held = self.pop_due(id)?;
            if held.ends.is_none_or(|ends| now < ends) {
                return Some(Step::Call(self.call(id, now)?));
            }
            self.holds.remove(&id);
        }
        None
    }

    fn call(&mut self, id: u64, now: Instant) -> Option<Call> {
        let held = self.holds.get_mut(&id)?;
        held.is_called = true;
        let (next, operation) = (held.next, held.operation());
        let (mut charges, mut ids) = (vec![held.charge()], vec![id]);
        while next != NextCall::Release && charges.len() < Charge::MOST {
            // The limits of one key and request have one instant.
            let Some(id) = first_due(&self.due, now) else {
                break;
            };
            let first: &OwnedCharge = &charges[0];
            let is_same = |held: &&Held| {
                let is_same_key = first.as_charge().key() == held.charge.as_charge().key();
                let is_same_call = held.next == next && held.operation() == operation;
                is_same_call && is_same_key && !held.is_over(now)
            };
            let Some(held) = self.holds.get(&id).filter(is_same) else {
                break;
            };
            charges.push(held.charge());
            ids.push(id);
            self.pop_due(id)?.is_called = true;
        }
        Some(Call {
            operation,
            charges,
            ids,
            sent: now,
        })
    }

    pub(super) fn wakes_at(&self) -> Option<Instant> {
        let firsts = [self.due.first(), self.due_releases.first()];
        let next = firsts.into_iter().flatten().map(|(due, _)| *due).min()?;
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
        let at = answer.as_ref().map(Decision::at);
        let statuses = answer.as_ref().map_or(&[][..], Decision::statuses);
        for (position, id) in call.ids.into_iter().enumerate() {
            // A released hold has left.
            let Some(held) = self.holds.get_mut(&id) else {
                continue;
            };
            let (ttl, is_release) = (
                held.ttl(),
                matches!(call.operation, Operation::Refund { .. }),
            );
            let taken = statuses.get(position).map(|status| status.taken);
            let due = match (held.next, taken) {
                (NextCall::Release, _) if is_release && answer.is_ok() => {
                    self.holds.remove(&id);
                    continue;
                }
                (NextCall::Release, _) if is_release => now + PAUSE,
                // The call may have taken the units, also if its answer is lost.
                (NextCall::Release, _) => now,
                (_, Some(1..)) => {
                    if let (NextCall::TakeAgain, Ok(at)) = (held.next, &at) {
                        held.taken_at = held.taken_at.taken_again_at(*at);
                    }
                    held.next = NextCall::Renew;
                    held.renewed = call.sent;
                    self.tick(call.sent, ttl / 3, ttl)
                }
                (NextCall::Renew, Some(0)) => {
                    held.next = NextCall::TakeAgain;
                    lost.push((HoldId(id), held.name()));
                    now
                }
                _ => self.tick(now, ttl / 6, ttl),
            };
            self.call_at(id, due);
        }
        lost
    }

    /// Makes the calls of a task due again that ended with its runtime.
    pub(super) fn interrupt(&mut self, now: Instant) {
        self.is_driven = false;
        let called = self.holds.iter().filter(|(_, held)| held.is_called);
        let called: Vec<u64> = called.map(|(id, _)| *id).collect();
        for id in called {
            self.call_at(id, now);
        }
    }

    fn adapt(&mut self, is_success: bool, now: Instant) {
        if is_success {
            self.most_calls = (2 * self.most_calls).min(MOST_CALLS);
        } else if self.most_calls > 1 {
            self.most_calls /= 2;
        } else {
            // One call finds out whether an outage is over.
            self.resumes = now + PAUSE;
        }
    }

    fn pop_due(&mut self, id: u64) -> Option<&mut Held> {
        let held = self.holds.get_mut(&id)?;
        if let Some(due) = held.due.take() {
            self.due.remove(&(due, id));
            self.due_releases.remove(&(due, id));
        }
        Some(held)
    }

    fn call_at(&mut self, id: u64, due: Instant) {
        if let Some(held) = self.holds.get_mut(&id) {
            held.is_called = false;
            held.due = Some(due);
            match held.next {
                NextCall::Release => self.due_releases.insert((due, id)),
                NextCall::Renew | NextCall::TakeAgain => self.due.insert((due, id)),
            };
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

fn first_due(queue: &BTreeSet<(Instant, u64)>, now: Instant) -> Option<u64> {
    let (due, id) = queue.first()?;
    (*due <= now).then_some(*id)
}
