//! Holds the leased units of one limit of one key.
//!
//! After a call that found few units, the pool refuses requests for a quarter of a lease, while units collect in the
//! store. Otherwise each unit would need a call.

use core::time::Duration;

use tokio::runtime::{self, Handle};
use tokio::sync::broadcast;
use tower_quota_core::{Algorithm, Charge, Key, Left, LimitStatus, Name, Outcome, Timestamp};

use crate::answer::{AnswerTimes, LeaseAnswer, micros};
use crate::demand::Demand;
use crate::grants::{Grant, Grants};
use crate::plan::LeasePlan;

/// The smallest lease. An exact round trip is as good as a lease of one unit.
pub(crate) const SMALLEST: u64 = 2;
/// The divisor of a lease for the length of a pause.
const PAUSES: u64 = 4;
const PAUSE_AFTER_LOSS: u64 = 16;
pub(crate) const CALL_DEADLINE: u64 = 1_000_000;

pub(crate) struct Pool {
    pub(crate) limit: Name,
    pub(crate) plan: LeasePlan,
    /// A number that differs from the number of an earlier pool of the limit, which was reset.
    pub(crate) serial: u64,
    pub(crate) grants: Grants,
    pub(crate) demand: Demand,
    answer: LeaseAnswer,
    pause_until: u64,
    /// The instant of the next call for a lease, or the timeout of the call in flight.
    next_lease_at: u64,
    call: Option<Call>,
}

struct Call {
    runtime: runtime::Id,
    end: CallEnd,
    units: u64,
}

/// The receiving end of a call. The sender is dropped when the answer is recorded or the call has
/// failed. A broadcast wakes the receivers in the order in which they wait, and a watch does not.
pub(crate) type CallEnd = broadcast::Receiver<()>;

#[derive(Clone, Copy)]
pub(crate) struct Want {
    pub(crate) limit: Name,
    pub(crate) plan: LeasePlan,
    pub(crate) serial: u64,
    pub(crate) units: u64,
    pub(crate) is_short: bool,
}

impl Want {
    pub(crate) fn charge<'c>(&'c self, key: &'c Key<'c>, units: u64) -> Charge<'c> {
        let charge = Charge::new(self.limit, &self.plan.counted, key).cost(units);
        // Let the store remember the refill since the charge, so that it refunds a part of the
        // charge exactly.
        charge.refundable()
    }
}

impl Pool {
    pub(crate) fn new(limit: Name, plan: LeasePlan, serial: u64) -> Self {
        Self {
            limit,
            plan,
            serial,
            grants: Grants::default(),
            demand: Demand::new(plan.term),
            answer: LeaseAnswer::default(),
            pause_until: 0,
            next_lease_at: 0,
            call: None,
        }
    }

    pub(crate) fn begin_lease_call(&mut self, want: &Want, runtime: &Handle, end: CallEnd) {
        self.call = Some(Call {
            runtime: runtime.id(),
            end,
            units: want.units,
        });
    }

    /// Returns the call in flight, if a request should wait for its lease.
    ///
    /// If each request asked the store meanwhile, a slow store would get more requests than a fast one, and become
    /// slower.
    pub(crate) fn call_for(&self, cost: u64) -> Option<CallEnd> {
        let call = self.call.as_ref().filter(|call| cost <= call.units)?;
        // Do not wait for another runtime, which may stand still.
        let is_here = Handle::try_current().ok()?.id() == call.runtime;
        is_here.then(|| call.end.resubscribe())
    }

    /// Returns the units that the store had at the last answer, or has in a new window.
    fn remaining(&self, now: u64) -> u64 {
        let LeaseAnswer {
            remaining, times, ..
        } = self.answer;
        // Count a new window as full. Otherwise all requests would call the store until the first
        // answer.
        let is_new_window = self.is_window()
            && times != AnswerTimes::default()
            && self.answer.reset_after(now).is_zero();
        if is_new_window {
            self.plan.counted.capacity()
        } else {
            remaining
        }
    }

    pub(crate) fn is_live(&self, now: u64) -> bool {
        self.demand.is_recent(now) || now < self.next_lease_at || self.grants.have_units()
    }

    pub(crate) fn note(&mut self, now: u64, cost: u64) {
        if cost <= self.plan.counted.capacity() {
            self.demand.note(now, cost);
        }
    }

    pub(crate) fn refusal(&self, now: u64, cost: u64) -> Option<(LimitStatus, Timestamp)> {
        if now >= self.pause_until || !self.is_short(now, cost) {
            return None;
        }
        let LeaseAnswer {
            remaining, times, ..
        } = self.answer;
        let missing = self.plan.refill_time(cost.saturating_sub(remaining));
        let fits_at = times.received.saturating_add(missing);
        let wait = Duration::from_micros(self.pause_until.max(fits_at) - now);
        let status = self.status(now, 0);
        let remaining = status.remaining().min(cost - 1);
        let refused = LimitStatus {
            left: Left::new(remaining, status.reset_after().max(wait)),
            outcome: Outcome::Refuse(wait),
            ..status
        };
        Some((refused, times.at))
    }

    /// Begins a call of the store, and a pause if the store has few units.
    pub(crate) fn begin_call(&mut self, now: u64, cost: u64) -> Option<Want> {
        // Lease at least the cost, because a smaller lease would take units that the request needs.
        let want = self.next_lease(now, cost.max(SMALLEST));
        if self.is_short(now, cost) {
            self.pause_until = now + self.plan.term / PAUSES;
        }
        want
    }

    fn is_window(&self) -> bool {
        self.plan.asked.algorithm() == Algorithm::FixedWindow
    }

    fn is_short(&self, now: u64, cost: u64) -> bool {
        // Without a refill, a pause would only delay the last units.
        self.plan.refilled >= PAUSES
            // Leave a cost that never fits to the store, which refuses it without a retry time.
            && cost <= self.plan.counted.capacity()
            // Trust only a recent answer, because other instances may have returned units since.
            && now < self.answer.times.sent + 2 * self.plan.term
            && self.is_hot(now)
            && self.answer.remaining < self.demand.units_at_cost(cost)
    }

    /// Returns whether to lease for the client. A slow answer would arrive after the end of the
    /// lease.
    fn is_hot(&self, now: u64) -> bool {
        self.demand.is_hot(now) && self.answer.round_trip() < self.plan.term
    }

    /// Returns the due lease if the store has enough units, and counts the call as in flight.
    ///
    /// A hot client holds three quarters of its use in a term. The next lease is due when half of them are spent. A
    /// larger lease would often be refunded.
    pub(crate) fn next_lease(&mut self, now: u64, least: u64) -> Option<Want> {
        let held = self.grants.units(now);
        let needed = self.demand.units().saturating_mul(3) / 4;
        let is_due = self.is_hot(now)
            && held.saturating_mul(2) < needed
            && now >= self.pause_until.max(self.next_lease_at);
        if !is_due {
            return None;
        }
        // Leave half of the remaining units in the store for the other instances.
        let units = (needed - held).min(self.remaining(now) / 2);
        // Leases also need the tasks of a runtime.
        if units < least || Handle::try_current().is_err() {
            return None;
        }
        let want = Want {
            limit: self.limit,
            plan: self.plan,
            serial: self.serial,
            units,
            is_short: units < needed - held,
        };
        self.next_lease_at = now + self.plan.term.max(CALL_DEADLINE);
        Some(want)
    }

    pub(crate) fn end_lease_call(&mut self, want: &Want, sent: u64, is_granted: bool) {
        self.next_lease_at = 0;
        self.call = None;
        // Do not pause in a window, which may have ended just after the call.
        let is_window = self.is_window();
        if !is_granted && !is_window || want.is_short && self.plan.refilled >= PAUSES {
            self.pause_until = self.pause_until.max(sent + self.plan.term / PAUSES);
        }
    }

    /// Returns the lost units of a lease whose runtime has ended.
    ///
    /// The next leases would probably be lost too, if the program makes a runtime for each job.
    pub(crate) fn lose_lease(&mut self, now: u64, grant: &Grant) -> u64 {
        let lost = self.grants.remove(grant);
        if lost > 0 {
            self.next_lease_at = now + PAUSE_AFTER_LOSS * self.plan.term;
        }
        lost
    }

    pub(crate) fn observe(&mut self, status: &LimitStatus, times: AnswerTimes) {
        if self.answer.times.sent <= times.sent {
            self.answer = LeaseAnswer::new(status, times);
        }
    }

    /// Forgets the answer after a failed call, so that the next requests ask the store.
    pub(crate) fn forget_answer(&mut self) {
        self.answer = LeaseAnswer::default();
    }

    pub(crate) fn grant(&mut self, units: u64, status: &LimitStatus, times: AnswerTimes) -> Grant {
        let mut lasts = self.plan.term;
        // End the lease with the window, because its units end there too.
        if self.is_window() {
            lasts = lasts.min(micros(status.reset_after()));
        }
        let grant = Grant {
            units,
            charged: units,
            charged_at: times.at,
            ends_at: times.sent + lasts,
        };
        self.grants.add(times.sent, grant);
        grant
    }

    pub(crate) fn status(&self, now: u64, taken: u64) -> LimitStatus {
        let remaining = self.answer.remaining.saturating_add(self.grants.units(now));
        let reset_after = self.answer.reset_after(now);
        let limit = self.plan.asked.capacity();
        LimitStatus {
            name: self.limit,
            limit,
            left: Left::new(remaining.min(limit), reset_after),
            taken,
            outcome: Outcome::Allow,
            is_shadow: false,
        }
    }

    /// Learns from an answer, and delays the retry time to the end of a pause.
    pub(crate) fn complete(
        &mut self,
        status: &mut LimitStatus,
        times: AnswerTimes,
        is_of_store: bool,
    ) {
        if is_of_store {
            self.observe(status, times);
        }
        if let Outcome::Refuse(wait) = status.outcome {
            // The refusal cache may be ahead of the store by a part of a round trip.
            let ahead = if is_of_store {
                0
            } else {
                self.answer.round_trip()
            };
            let wait = wait + Duration::from_micros(ahead);
            let pause = Duration::from_micros(self.pause_until.saturating_sub(times.received));
            status.outcome = Outcome::Refuse(wait.max(pause));
        }
    }
}

#[cfg(test)]
mod tests {
    use tower_quota_core::Quota;

    use super::*;

    const NAME: Name = Name::new("second");

    fn pool() -> Pool {
        let quota = Quota::per_second(1_000);
        let plan = LeasePlan::of(&Charge::new(NAME, &quota, &Key::EVERYONE), 50_000).unwrap();
        Pool::new(NAME, plan, 1)
    }

    fn status(remaining: u64) -> LimitStatus {
        LimitStatus {
            name: NAME,
            limit: 1_000,
            left: Left::new(remaining, Duration::from_millis(1)),
            taken: 1,
            outcome: Outcome::Allow,
            is_shadow: false,
        }
    }

    #[test]
    fn request_waits_only_for_deciding_lease() {
        let current = || {
            tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap()
        };
        let (here, elsewhere, mut pool) = (current(), current(), pool());
        let want = Want {
            limit: NAME,
            plan: pool.plan,
            serial: 1,
            units: 10,
            is_short: false,
        };
        let (_answered, end) = broadcast::channel(1);
        pool.begin_lease_call(&want, here.handle(), end);
        let waits = |pool: &Pool, cost| pool.call_for(cost).is_some();
        assert!(here.block_on(async { waits(&pool, 10) && !waits(&pool, 11) }));
        // The other runtime may never run the call.
        assert!(!elsewhere.block_on(async { waits(&pool, 1) }) && !waits(&pool, 1));
        pool.end_lease_call(&want, 0, true);
        assert!(!here.block_on(async { waits(&pool, 1) }));
    }

    #[test]
    fn answer_to_earlier_call_changes_nothing() {
        let mut pool = pool();
        let mut observe = |remaining, sent| {
            let times = AnswerTimes {
                sent,
                received: sent + 400,
                at: Timestamp::EPOCH,
            };
            pool.observe(&status(remaining), times);
            pool.answer.remaining
        };
        assert_eq!(observe(500, 90_000), 500);
        assert_eq!(observe(600, 89_999), 500);
        assert_eq!(observe(400, 90_001), 400);
    }
}
