//! Pools: what an instance holds and knows of one limit of one key.

use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::{Decision, Left, LimitStatus, Name, Outcome, Timestamp};

use crate::grant::{Grant, Grants};
use crate::plan::Plan;
use crate::refusal::{AnswerTimes, PoolRefusal, Seen};
use crate::remembered::Uncounted;
use crate::want::{Want, call_deadline, has_runtime};

/// The requests within a lease's time from which a key is leased.
///
/// A lease and its refund are two calls. With fewer requests they save little, and what several instances hold of a
/// small quota is missing in the store.
const HOT_REQUESTS: u32 = 8;
/// The time that they have to last, in microseconds, unless they filled the time of the lease before.
///
/// A shorter burst is over when its lease arrives: the other instances would miss the units until they are refunded.
const LASTING: u64 = 100_000;
/// The requests from which a key is leased without delay.
const HOT_AT_ONCE: u32 = 64;
/// The smallest lease. A lease of one unit would be an exact round trip.
const SMALLEST: u64 = 2;
/// The part of a lease for which an instance does not ask again after a short or refused one.
const PAUSES: u64 = 4;
/// The leases' times for which no lease is asked for after one was lost.
const PAUSE_AFTER_LOSS: u64 = 16;

/// The units and the observations of one limit of one key.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) limit: Name,
    pub(crate) plan: Arc<Plan>,
    /// Distinguishes it from an earlier pool of the same limit that was reset.
    pub(crate) serial: u64,
    pub(crate) grants: Grants,
    demand: Demand,
    /// The store's last answer.
    seen: Option<Seen>,
    /// The time that the store's last answer took, in microseconds.
    round_trip: u64,
    /// The instant until which requests are refused that find no units here.
    refuse_until: u64,
    /// The instant until which no lease is asked for.
    pause_until: u64,
    /// The instant until which a lease is being asked for. A runtime that stands still does not end the call before.
    asking_until: u64,
    /// The units refused here that the store may have had, by its last answer. It has yet to show whether time made up
    /// for them.
    missed: u64,
}

/// The units asked for in the present span of one lease's time, and in the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Demand {
    started: u64,
    /// The instant of the last request.
    last: u64,
    units: u64,
    requests: u32,
    units_before: u64,
    requests_before: u32,
}

impl Pool {
    pub(crate) fn new(limit: Name, plan: Arc<Plan>, serial: u64) -> Self {
        let (grants, demand) = (Grants::default(), Demand::default());
        let (seen, round_trip, refuse_until, pause_until, asking_until, missed) =
            (None, 0, 0, 0, 0, 0);
        Self {
            limit,
            plan,
            serial,
            grants,
            demand,
            seen,
            round_trip,
            refuse_until,
            pause_until,
            asking_until,
            missed,
        }
    }

    /// Records that a request asks for units. A cost that can never fit is no demand.
    pub(crate) fn note(&mut self, now: u64, cost: u64) {
        if cost <= self.plan.stored.capacity() {
            self.note_all(now, 1, cost);
        }
    }

    /// Records that a request is refused here.
    pub(crate) fn note_refusal(&mut self, now: u64, cost: u64) {
        self.note(now, cost);
        self.missed = self.missed.saturating_add(cost);
    }

    /// Records requests that a thread has refused for this pool. Those older than a lease are no demand.
    pub(crate) fn note_refused(&mut self, now: u64, refused: &Uncounted) {
        if refused.requests == 0 || refused.serial != self.serial {
            return;
        }
        self.missed = self.missed.saturating_add(refused.units);
        if now < refused.last.saturating_add(self.plan.term) {
            self.note_all(now, refused.requests, refused.units);
        }
    }

    fn note_all(&mut self, now: u64, requests: u32, units: u64) {
        self.demand.advance(now, self.plan.term);
        self.demand.last = now;
        self.demand.units = self.demand.units.saturating_add(units);
        self.demand.requests = self.demand.requests.saturating_add(requests);
    }

    /// Forgets that a request asked for units: it has not taken them, and asks again or is refused.
    pub(crate) fn forget(&mut self, cost: u64) {
        self.demand.units = self.demand.units.saturating_sub(cost);
        self.demand.requests = self.demand.requests.saturating_sub(1);
    }

    /// Returns whether the pool has been used lately, or waits for an answer.
    pub(crate) fn is_live(&self, now: u64) -> bool {
        let was_used = now < self.demand.started.saturating_add(2 * self.plan.term);
        was_used || now < self.asking_until || self.grants.have_units()
    }

    /// Returns whether it has refused requests that threads may remember.
    pub(crate) const fn has_refused(&self, now: u64) -> bool {
        now < self.refuse_until
    }

    /// Returns the refusal of a request that finds no units here; `None` if the store is to be asked.
    pub(crate) fn refuses(&self, now: u64, cost: u64) -> Option<PoolRefusal> {
        if now < self.refuse_until && self.is_short(now, cost) {
            self.refusal(now)
        } else {
            None
        }
    }

    /// Prepares for a request that is about to ask the store by itself.
    ///
    /// Where little is left, the next requests are refused for a quarter of a lease, so that a crowd that finds the
    /// store empty costs one call.
    pub(crate) fn begin_exact(&mut self, now: u64, cost: u64) {
        if self.is_refilled_soon() && self.is_short(now, cost) {
            self.refuse_until = now + self.plan.term / PAUSES;
        }
    }

    /// Returns the lease to ask for instead of a request, where little is left in the store.
    ///
    /// The request itself is refused: what it would take from the store is in the lease.
    pub(crate) fn next_short_lease(&mut self, now: u64, cost: u64) -> Option<Want> {
        // A client that has waited, as it was asked to, is no crowd that would use a lease up.
        let is_crowd = now < self.demand.last + self.plan.term / PAUSES;
        if !is_crowd
            || now < self.refuse_until
            || !self.is_refilled_soon()
            || !self.is_short(now, cost)
        {
            return None;
        }
        let want = self.next_lease(now)?;
        self.refuse_until = now + self.plan.term / PAUSES;
        Some(want)
    }

    /// Returns whether the store has too little left for this request and the others of a lease.
    ///
    /// 1. An old answer says nothing: others may have returned units, and time has refilled some.
    /// 2. A large cost does not stand for the other requests, nor do the large costs of others for a small one.
    /// 3. While leases come too late, units gather in the store for other requests.
    /// 4. A cost that can never fit is left to the store, which refuses it without a time to retry.
    fn is_short(&self, now: u64, cost: u64) -> bool {
        let requests = u64::from(self.demand.requests.max(self.demand.requests_before));
        let needed = self
            .demand
            .expected()
            .max(cost)
            .min(requests.saturating_mul(cost));
        let seen = self.seen.filter(|seen| now < self.stale_at(seen));
        let could_fit = cost <= self.plan.stored.capacity();
        could_fit
            && !self.is_too_slow()
            && self.is_hot(now)
            && seen.is_some_and(|seen| seen.remaining < needed)
    }

    /// Returns whether leases would be over when they come, by the last answer. Each request then asks the store.
    fn is_too_slow(&self) -> bool {
        self.round_trip >= self.plan.term
    }

    /// Returns the instant from which an answer says nothing.
    fn stale_at(&self, seen: &Seen) -> u64 {
        seen.sent.saturating_add(2 * self.plan.term)
    }

    /// Returns whether time refills some units until the store is asked again.
    ///
    /// Otherwise the last units of a quota are taken by exact round trips. These are few, and none is refused for nothing.
    fn is_refilled_soon(&self) -> bool {
        self.plan.refilled >= PAUSES
    }

    /// Returns the lease that should be asked for now, if it can be, and counts it as asked for.
    pub(crate) fn next_lease(&mut self, now: u64) -> Option<Want> {
        let units = self.due(now).filter(|_| has_runtime())?;
        self.asking_until = now + call_deadline(self.plan.term);
        Some(Want {
            limit: self.limit,
            plan: Arc::clone(&self.plan),
            serial: self.serial,
            units,
        })
    }

    /// Returns the units of the lease that is due.
    ///
    /// 1. A hot client holds three quarters of one lease's demand; a lease is fetched when half of them are spent. The
    ///    larger of two spans is taken for the demand, so that more would often be refunded, and a store that records
    ///    few low marks gives a refund back in part only.
    /// 2. No lease takes more than half of what the store had left.
    fn due(&self, now: u64) -> Option<u64> {
        let (held, expected) = (
            self.grants.units(now),
            self.demand.expected().saturating_mul(3) / 4,
        );
        let is_due =
            self.is_hot(now) && held.saturating_mul(2) < expected && self.grants.have_room(now);
        if !is_due || now < self.asking_until || self.is_too_slow() || now < self.pause_until {
            return None;
        }
        let units = (expected - held).min(self.seen?.remaining / 2);
        (units >= SMALLEST).then_some(units)
    }

    /// Ends the call for a lease, without a new one for a quarter of its time unless it was granted.
    pub(crate) fn end_lease(&mut self, now: u64, is_granted: bool) {
        self.asking_until = 0;
        if !is_granted {
            self.pause_until = now + self.plan.term / PAUSES;
        }
    }

    /// Removes a lease whose runtime has ended, and returns the units that are lost with it.
    ///
    /// The next ones would probably be lost, too: a program that makes a runtime for each job asks for few.
    pub(crate) fn lose_lease(&mut self, now: u64, charged_at: Timestamp, ends_at: u64) -> u64 {
        let lost = self.grants.remove(charged_at, ends_at);
        if lost > 0 {
            self.pause_until = now + PAUSE_AFTER_LOSS * self.plan.term;
        }
        lost
    }

    /// Records an answer of the store. `cost` are the units that the call asked for.
    ///
    /// Returns the units that were refused here for nothing: the answer shows that the store has enough again.
    ///
    /// Answers may overtake each other: an older one says less. Of one instant, the later one has less left. A store
    /// whose clock was set back is ignored only until its last answer is stale.
    pub(crate) fn observe(&mut self, status: &LimitStatus, cost: u64, answer: AnswerTimes) -> u64 {
        let AnswerTimes { sent, received, at } = answer;
        self.round_trip = received.saturating_sub(sent);
        let precedes =
            |seen: &Seen| at < seen.at || at == seen.at && status.remaining() > seen.remaining;
        if self
            .seen
            .is_some_and(|seen| sent < self.stale_at(&seen) && precedes(&seen))
        {
            return 0;
        }
        // The store, too, would have refused what is beyond this.
        self.missed = self
            .missed
            .min(status.remaining().saturating_add(status.taken));
        let mut seen = Seen {
            remaining: status.remaining(),
            at,
            sent,
            full_at: sent + micros(status.reset_after()),
            retry_at: 0,
            refused_cost: u64::MAX,
        };
        if let Outcome::Refuse(retry) = status.outcome {
            (seen.retry_at, seen.refused_cost) = (sent + micros(retry), cost);
        }
        self.seen = Some(seen);
        if status.outcome.is_refusal() && self.is_short(sent, cost) {
            self.refuse_until = sent + self.plan.term / PAUSES;
        }
        // While little is left, it goes to later requests, and as much is refused here as there would be without leases.
        if self.is_little(status.remaining()) {
            0
        } else {
            core::mem::take(&mut self.missed)
        }
    }

    /// Returns the units that were refused here for nothing, if the client has not asked lately.
    ///
    /// They are at most what the store had at its last answer and what was refilled until the client was silent.
    pub(crate) fn end_missed(&mut self, now: u64) -> u64 {
        if self.is_live(now) {
            return 0;
        }
        let most = match (self.plan.refilled, self.seen) {
            (0, _) | (_, None) => self.plan.stored.capacity(),
            (refilled, Some(seen)) => seen.remaining.saturating_add(2 * refilled),
        };
        core::mem::take(&mut self.missed).min(most)
    }

    /// Returns whether others may have missed the units of a lease that is over.
    ///
    /// `others_left` are the units that the store had besides them when they came back.
    pub(crate) fn was_short(&self, others_left: u64) -> bool {
        self.is_little(others_left) || self.seen.is_some_and(|seen| self.is_little(seen.remaining))
    }

    /// Returns whether this is less than a lease of this instance, or than time refills in one.
    fn is_little(&self, remaining: u64) -> bool {
        remaining < self.demand.expected().max(self.plan.refilled)
    }

    /// Forgets the last answer: the store has failed to give another.
    ///
    /// Until it answers again, requests ask it, so that each gets its limit's choice for a failure.
    pub(crate) const fn forget_answer(&mut self) {
        self.seen = None;
        self.refuse_until = 0;
    }

    /// Adds a lease that was asked for at `sent`. Returns the instant at which it ends.
    pub(crate) fn grant(
        &mut self,
        units: u64,
        decision: &Decision,
        status: &LimitStatus,
        sent: u64,
    ) -> u64 {
        let mut ends_at = sent + self.plan.term;
        if self.plan.ends_with_window {
            // The window ends this long after the decision, which came after the call was sent.
            ends_at = ends_at.min(sent + micros(status.reset_after()));
        }
        self.grants.add(
            sent,
            Grant {
                units,
                charged: units,
                charged_at: decision.at(),
                ends_at,
            },
        );
        ends_at
    }

    /// Returns the status of the limit as far as this instance knows it: a lower bound of what remains.
    pub(crate) fn status(&self, now: u64, taken: u64) -> LimitStatus {
        let (left, full_at) = self
            .seen
            .map_or((0, 0), |seen| (seen.remaining, seen.full_at));
        let remaining = left.saturating_add(self.grants.units(now));
        let limit = self.plan.asked.capacity();
        let left = Left::new(
            remaining.min(limit),
            Duration::from_micros(full_at.saturating_sub(now)),
        );
        LimitStatus {
            name: self.limit,
            limit,
            left,
            taken,
            outcome: Outcome::Allow,
            is_shadow: false,
        }
    }

    /// Returns the refusal that holds now, if the store has answered.
    fn refusal(&self, now: u64) -> Option<PoolRefusal> {
        let seen = self.seen?;
        Some(PoolRefusal {
            limit: self.limit,
            capacity: self.plan.asked.capacity(),
            largest: self.plan.stored.capacity(),
            remaining: self.status(now, 0).remaining(),
            seen,
            refuse_until: self.refuse_until,
            known_until: self
                .refuse_until
                .min(self.stale_at(&seen))
                .min(self.grants.first_end(now)),
        })
    }

    /// Returns whether the key's demand has lasted or is large, so that it is likely to go on.
    const fn is_hot(&self, now: u64) -> bool {
        let Demand {
            started,
            requests,
            requests_before,
            ..
        } = self.demand;
        let has_lasted = requests >= HOT_REQUESTS && now >= started.saturating_add(LASTING);
        has_lasted || requests_before >= HOT_REQUESTS || requests >= HOT_AT_ONCE
    }
}

impl Demand {
    /// Begins a new span if the present one is over.
    fn advance(&mut self, now: u64, span: u64) {
        let elapsed = now.saturating_sub(self.started);
        if elapsed >= span {
            let is_next = elapsed < span.saturating_mul(2);
            let (units_before, requests_before) = if is_next {
                (self.units, self.requests)
            } else {
                (0, 0)
            };
            *self = Self {
                started: now,
                units: 0,
                requests: 0,
                units_before,
                requests_before,
                ..*self
            };
        }
    }

    /// Returns the units expected within one lease's time.
    fn expected(self) -> u64 {
        self.units.max(self.units_before)
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use tower_quota_core::{Charge, Key, Quota};

    use super::*;
    use crate::plan::Plans;

    const NAME: Name = Name::new("second");

    fn pool() -> Pool {
        let quota = Quota::per_second(1_000);
        let plan = Plans::new(Duration::from_millis(50))
            .of(&Charge::new(NAME, &quota, &Key::EVERYONE))
            .unwrap();
        Pool::new(NAME, plan, 1)
    }

    fn status(remaining: u64) -> LimitStatus {
        let left = Left::new(remaining, Duration::from_millis(1));
        LimitStatus {
            name: NAME,
            limit: 1_000,
            left,
            taken: 1,
            outcome: Outcome::Allow,
            is_shadow: false,
        }
    }

    #[test]
    fn older_answer_changes_nothing() {
        let mut pool = pool();
        let mut observe = |remaining, at, sent| {
            let at = Timestamp::from_micros(at);
            pool.observe(
                &status(remaining),
                1,
                AnswerTimes {
                    sent,
                    received: sent + 400,
                    at,
                },
            );
            pool.seen.unwrap().remaining
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

    #[test]
    fn ended_flood_misses_no_more_than_store_had() {
        let mut pool = pool();
        let at = Timestamp::from_micros(1);
        pool.observe(
            &status(2),
            1,
            AnswerTimes {
                sent: 1_000,
                received: 1_400,
                at,
            },
        );
        (0..10_000).for_each(|_| pool.note_refusal(1_500, 1));
        assert_eq!(pool.end_missed(2_000), 0, "the client may ask again");
        // Two units, and what is refilled in two leases.
        assert_eq!(pool.end_missed(200_000), 102);
        assert_eq!(pool.end_missed(200_000), 0);
    }
}
