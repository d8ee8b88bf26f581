//! The units that an instance holds of one limit of one key.
//!
//! A request takes units from the [grants](Grants) of the pool. Without enough units, the request asks the store.
//!
//! # When the store has few units left
//!
//! A call for each unit would be as many calls as without leases. After a call that found few units, the pool therefore
//! pauses for a quarter of a lease, and refuses requests meanwhile. The store keeps the units of that time. The first request
//! after the pause waits for a new lease or asks the store, so that a client who obeys the retry time is admitted.

use core::time::Duration;

use tokio::runtime::Handle;
use tower_quota_core::Left;
use tower_quota_core::{LimitStatus, Name, Outcome, Timestamp};

use crate::answer::{Answer, AnswerTimes};
use crate::demand::Demand;
use crate::grants::{Grant, Grants};
use crate::plan::Plan;

/// The smallest lease. An exact round trip is as good as a lease of one unit.
pub(crate) const SMALLEST: u64 = 2;
/// A pause lasts this part of a lease.
const PAUSES: u64 = 4;
/// The pause after a lost lease, in leases.
const PAUSE_AFTER_LOSS: u64 = 16;
/// The longest call for a lease whose term is shorter, in microseconds.
const CALL_DEADLINE: u64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) limit: Name,
    pub(crate) plan: Plan,
    /// Differs from the serial of an earlier pool that was reset.
    pub(crate) serial: u64,
    pub(crate) grants: Grants,
    demand: Demand,
    answer: Option<Answer>,
    /// The end of the pause.
    pause_until: u64,
    /// The earliest instant of the next call for a lease. While a call is in flight, the instant of its timeout.
    next_lease_at: u64,
}

/// A lease that is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) limit: Name,
    pub(crate) plan: Plan,
    pub(crate) serial: u64,
    pub(crate) units: u64,
    /// Whether the client needs more units than the lease has.
    is_short: bool,
}

/// The calls for a request that found too few units in the pool.
pub(crate) struct Calls {
    pub(crate) lease: Option<Want>,
    /// Whether the request waits for the lease. Otherwise the request asks the store itself.
    pub(crate) waits: bool,
}

impl Want {
    /// Returns how long the call may take, in microseconds. A lease that arrives after its end is refunded.
    pub(crate) fn call_deadline(&self) -> u64 {
        self.plan.term.max(CALL_DEADLINE)
    }
}

impl Pool {
    pub(crate) fn new(limit: Name, plan: Plan, serial: u64) -> Self {
        Self {
            limit,
            plan,
            serial,
            grants: Grants::default(),
            demand: Demand::new(plan.term),
            answer: None,
            pause_until: 0,
            next_lease_at: 0,
        }
    }

    /// Returns whether the client has asked recently, or the pool has units or a call in flight.
    pub(crate) fn is_live(&self, now: u64) -> bool {
        self.demand.is_recent(now) || now < self.next_lease_at || self.grants.have_units()
    }

    /// Records the demand of a request. A cost that never fits is no demand.
    pub(crate) fn note(&mut self, now: u64, cost: u64) {
        if cost <= self.plan.stored.capacity() {
            self.demand.note(now, cost);
        }
    }

    pub(crate) fn forget(&mut self, cost: u64) {
        self.demand.forget(cost);
    }

    /// Returns the refusal of a request during a pause, and the instant of the refusal on the store's clock.
    pub(crate) fn refusal(&self, now: u64, cost: u64) -> Option<(LimitStatus, Timestamp)> {
        if now >= self.pause_until || !self.is_short(now, cost) {
            return None;
        }
        let answer = self.answer?;
        let missing = cost.saturating_sub(answer.remaining);
        let fits_at = answer
            .times
            .received
            .saturating_add(self.plan.refill_time(missing));
        let wait = Duration::from_micros(self.pause_until.max(fits_at) - now);
        let status = self.status(now, 0);
        let remaining = status.remaining().min(cost - 1);
        let refused = LimitStatus {
            left: Left::new(remaining, status.reset_after().max(wait)),
            outcome: Outcome::Refuse(wait),
            ..status
        };
        Some((refused, answer.store_now(now)))
    }

    /// Returns the calls for a request, and begins a pause if the store has few units.
    pub(crate) fn begin_calls(&mut self, now: u64, cost: u64) -> Calls {
        // A smaller lease would take units that the request needs.
        let lease = self.next_lease(now, cost.max(SMALLEST));
        let is_short = self.is_short(now, cost);
        if is_short {
            self.pause_until = now + self.plan.term / PAUSES;
        }
        Calls {
            waits: is_short && lease.is_some(),
            lease,
        }
    }

    /// Returns whether the store has too few units for the requests of a lease at this cost.
    fn is_short(&self, now: u64, cost: u64) -> bool {
        let Some(answer) = self.answer else {
            return false;
        };
        // The store refuses a cost that never fits, without a retry time.
        let could_fit = cost <= self.plan.stored.capacity();
        // Other instances may have returned units since an old answer.
        let is_recent = now < self.stale_at(&answer);
        self.refills_within_pause()
            && could_fit
            && is_recent
            && !self.is_too_slow()
            && self.demand.is_hot(now)
            && answer.remaining < self.demand.units_at_cost(cost)
    }

    /// Returns whether time refills units during a pause. Without a refill, a pause would only delay the last units.
    fn refills_within_pause(&self) -> bool {
        self.plan.refilled >= PAUSES
    }

    /// Returns whether a lease would be over when the answer arrives.
    fn is_too_slow(&self) -> bool {
        let answer = self.answer.as_ref();
        answer.is_some_and(|answer| answer.round_trip() >= self.plan.term)
    }

    fn stale_at(&self, answer: &Answer) -> u64 {
        answer.times.sent.saturating_add(2 * self.plan.term)
    }

    /// Returns the lease that is due, if the store has enough units, and counts the call as in flight.
    ///
    /// A hot client holds three quarters of the units that it uses in a term. The next lease is due when half of these
    /// units are spent. A larger lease would often be refunded.
    pub(crate) fn next_lease(&mut self, now: u64, least: u64) -> Option<Want> {
        let held = self.grants.units(now);
        let needed = self.demand.units().saturating_mul(3) / 4;
        let is_due = self.demand.is_hot(now)
            && held.saturating_mul(2) < needed
            && self.grants.have_room(now)
            && now >= self.pause_until.max(self.next_lease_at)
            && !self.is_too_slow();
        if !is_due {
            return None;
        }
        // Half of the remaining units stay in the store, for the other instances.
        let units = (needed - held).min(self.answer?.remaining / 2);
        // Tasks of a runtime ask for leases and return them.
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
        self.next_lease_at = now + want.call_deadline();
        Some(want)
    }

    /// Ends the call for a lease. After a short or refused lease, the pool pauses.
    pub(crate) fn end_lease_call(&mut self, want: &Want, sent: u64, is_granted: bool) {
        self.next_lease_at = 0;
        if !is_granted || want.is_short && self.refills_within_pause() {
            self.pause_until = self.pause_until.max(sent + self.plan.term / PAUSES);
        }
    }

    /// Removes a lease whose runtime has ended. Returns the lost units.
    ///
    /// The next leases would probably be lost too, for example if the program makes a runtime for each job.
    pub(crate) fn lose_lease(&mut self, now: u64, charged_at: Timestamp, ends_at: u64) -> u64 {
        let lost = self.grants.remove(charged_at, ends_at);
        if lost > 0 {
            self.next_lease_at = now + PAUSE_AFTER_LOSS * self.plan.term;
        }
        lost
    }

    /// Records an answer of the store, unless the store decided the last known answer later.
    pub(crate) fn observe(&mut self, status: &LimitStatus, times: AnswerTimes) {
        let answer = Answer::new(status, times);
        // If the clock of the store was set back, answers count again after the last answer is stale.
        let is_newer =
            |known: &Answer| times.sent >= self.stale_at(known) || !answer.precedes(known);
        if self.answer.as_ref().is_none_or(is_newer) {
            self.answer = Some(answer);
        }
    }

    /// Forgets the last answer after a failed call, so that the next requests ask the store.
    pub(crate) fn forget_answer(&mut self) {
        self.answer = None;
    }

    /// Adds a granted lease. Returns the end of the lease.
    pub(crate) fn grant(&mut self, want: &Want, status: &LimitStatus, times: AnswerTimes) -> u64 {
        let mut ends_at = times.sent + self.plan.term;
        if self.plan.ends_with_window {
            ends_at = ends_at.min(
                times
                    .sent
                    .saturating_add(crate::answer::micros(status.reset_after())),
            );
        }
        let grant = Grant {
            units: want.units,
            charged: want.units,
            charged_at: times.at,
            ends_at,
        };
        self.grants.add(times.sent, grant);
        ends_at
    }

    /// Returns the status of the limit. The remaining units are a lower bound.
    pub(crate) fn status(&self, now: u64, taken: u64) -> LimitStatus {
        let remaining = self.answer.map_or(0, |answer| answer.remaining);
        let remaining = remaining.saturating_add(self.grants.units(now));
        let reset_after = self
            .answer
            .map_or(Duration::ZERO, |answer| answer.reset_after(now));
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

    /// Returns the retry time of a refusal that an answer of the store or the refusal cache has.
    ///
    /// The cache may be ahead of the store by a part of a round trip.
    pub(crate) fn retry_time(&self, now: u64, wait: Duration, is_cached: bool) -> Duration {
        let ahead = match &self.answer {
            Some(answer) if is_cached => Duration::from_micros(answer.round_trip()),
            _ => Duration::ZERO,
        };
        let pause = Duration::from_micros(self.pause_until.saturating_sub(now));
        (wait + ahead).max(pause)
    }
}

#[cfg(test)]
mod tests {
    use tower_quota_core::{Charge, Key, Quota};

    use super::*;

    const NAME: Name = Name::new("second");

    fn pool() -> Pool {
        let quota = Quota::per_second(1_000);
        let plan = Plan::of(&Charge::new(NAME, &quota, &Key::EVERYONE), 50_000).unwrap();
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
    fn older_answer_changes_nothing() {
        let mut pool = pool();
        let mut observe = |remaining, at, sent| {
            let times = AnswerTimes {
                sent,
                received: sent + 400,
                at: Timestamp::from_micros(at),
            };
            pool.observe(&status(remaining), times);
            pool.answer.unwrap().remaining
        };
        assert_eq!(observe(500, 1_000, 90_000), 500);
        assert_eq!(observe(600, 999, 89_999), 500, "an older one");
        assert_eq!(
            observe(501, 1_000, 90_001),
            500,
            "an earlier one of the same instant"
        );
        assert_eq!(observe(499, 1_000, 90_001), 499);
        assert_eq!(observe(700, 1_001, 90_002), 700);
        assert_eq!(observe(800, 7, 190_002), 800, "a clock that was set back");
    }
}
