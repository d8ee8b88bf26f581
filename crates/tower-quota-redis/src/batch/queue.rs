//! What waits for one partition's server, what is under way, and what may be sent.

use core::time::Duration;
use std::collections::VecDeque;
use std::time::Instant;

use super::flow::Flow;
use super::pending::Pending;
use crate::breaker::Breaker;
use crate::stats::RedisStats;

/// The most that one call carries, in weights of a plain decision about one key. That takes the server 1 to 2
/// microseconds, so a call takes it about a quarter of a millisecond.
pub(super) const MOST_WEIGHT: usize = 128;

/// Guarded by one lock: everything that decides whether and when a decision is sent.
pub(super) struct Queue {
    waiting: VecDeque<Pending>,
    waiting_weight: usize,
    /// How many decisions have left the queue so far.
    left: u64,
    slots: usize,
    free_slots: Vec<usize>,
    /// One more slot, for a call that its caller makes itself while nothing else is going on.
    is_direct_free: bool,
    weight_under_way: usize,
    flow: Flow,
    breaker: Breaker,
    decisions: u64,
    calls: u64,
}

/// Why a decision is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotSent {
    BreakerOpen,
    Overloaded,
}

/// A decision's place in the queue.
#[derive(Clone, Copy)]
pub(super) struct Ticket(u64);

/// What one call carries.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) decisions: Vec<Pending>,
    pub(super) weight: usize,
    /// Whether decisions had to stay behind.
    pub(super) is_full: bool,
    /// Decisions with too little time left, to be refused.
    pub(super) late: Vec<Pending>,
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallEnd {
    /// With an answer of any kind.
    Answered,
    /// At its deadline.
    Late,
    /// Without a connection, or with the loss of it.
    Broken,
}

impl Queue {
    pub(super) fn new(slots: usize, deadline: Duration, breaker: Breaker) -> Self {
        Self {
            waiting: VecDeque::new(),
            waiting_weight: 0,
            left: 0,
            slots,
            free_slots: (0..slots).rev().collect(),
            is_direct_free: true,
            weight_under_way: 0,
            flow: Flow::new(deadline, slots * MOST_WEIGHT),
            breaker,
            decisions: 0,
            calls: 0,
        }
    }

    pub(super) fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// Returns how many decisions wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns how many calls are under way.
    pub(super) fn calls_under_way(&self) -> usize {
        self.slots - self.free_slots.len() + usize::from(!self.is_direct_free)
    }

    /// Returns why a decision that arrives now is refused, if it is.
    pub(super) fn admit(&mut self, now: Instant) -> Result<(), NotSent> {
        if !self.breaker.is_closed() {
            return if self.breaker.admit(now) { Ok(()) } else { Err(NotSent::BreakerOpen) };
        }
        if self.flow.is_in_time(self.waiting_weight, now) { Ok(()) } else { Err(NotSent::Overloaded) }
    }

    pub(super) fn push(&mut self, pending: Pending) -> Ticket {
        self.waiting_weight += pending.question.weight();
        self.waiting.push_back(pending);
        Ticket(self.left + self.waiting.len() as u64)
    }

    /// Returns whether a decision still waits.
    pub(super) fn is_waiting(&self, ticket: Ticket) -> bool {
        ticket.0 > self.left
    }

    /// Returns whether decisions wait that may be sent.
    pub(super) fn has_work(&self) -> bool {
        !self.waiting.is_empty() && !self.free_slots.is_empty() && self.room() > 0
    }

    /// Takes a slot for a task, if one is free.
    pub(super) fn take_slot(&mut self) -> Option<usize> {
        self.free_slots.pop()
    }

    /// Takes the slot for a direct call, if nothing is under way and only one decision waits.
    pub(super) fn take_direct_slot(&mut self) -> Option<usize> {
        let is_idle = self.calls_under_way() == 0 && self.waiting.len() == 1;
        is_idle.then(|| {
            self.is_direct_free = false;
            self.slots
        })
    }

    pub(super) fn free_slot(&mut self, slot: usize) {
        if slot == self.slots {
            self.is_direct_free = true;
        } else {
            self.free_slots.push(slot);
        }
    }

    /// Takes those that have waited longest, as many as may be sent in one call. A decision that weighs more than that
    /// is sent alone. Decisions that cannot be answered in time are set apart, and those that lost their callers dropped.
    pub(super) fn take_batch(&mut self, now: Instant) -> Batch {
        let (room, needed) = (self.room(), self.flow.time_needed(now));
        let mut batch = Batch::default();
        if room == 0 {
            return batch;
        }
        while let Some(next) = self.waiting.front() {
            let weight = next.question.weight();
            let is_late = next.expiry.is_some_and(|expiry| expiry.saturating_duration_since(now) <= needed);
            let is_sent = !next.answer.is_closed() && !is_late;
            if is_sent && batch.weight + weight > room && !batch.decisions.is_empty() {
                batch.is_full = true;
                break;
            }
            let Some(next) = self.waiting.pop_front() else { break };
            self.waiting_weight -= weight;
            self.left += 1;
            if is_sent {
                batch.weight += weight;
                batch.decisions.push(next);
            } else if is_late {
                batch.late.push(next);
            }
        }
        self.weight_under_way += batch.weight;
        self.decisions += batch.decisions.len() as u64;
        self.calls += u64::from(!batch.decisions.is_empty());
        batch
    }

    /// Adds what is known here to a store's figures.
    pub(super) fn add_to(&self, stats: &mut RedisStats) {
        if self.breaker.is_closed() {
            stats.closed_partitions += 1;
        } else {
            stats.open_partitions += 1;
        }
        stats.queued += self.waiting.len();
        stats.calls_under_way += self.calls_under_way();
        stats.decisions += self.decisions;
        stats.calls += self.calls;
    }

    /// Notes that a call is over, and what came of it if it ran to its end. Returns what waits if that opens the breaker.
    pub(super) fn call_ended(&mut self, batch: &CallSpan, end: Option<CallEnd>, now: Instant) -> Vec<Pending> {
        self.weight_under_way -= batch.weight;
        match end {
            Some(CallEnd::Answered) => {
                self.flow.measure(batch.began, now, batch.is_full);
                if self.breaker.answered(batch.began) {
                    self.flow.restart(now);
                }
                return Vec::new();
            }
            Some(CallEnd::Late) => self.flow.measure(batch.began, now, batch.is_full),
            Some(CallEnd::Broken) => {}
            None => return Vec::new(),
        }
        if !self.breaker.failed(batch.began, now) {
            return Vec::new();
        }
        self.left += self.waiting.len() as u64;
        self.waiting_weight = 0;
        core::mem::take(&mut self.waiting).into()
    }

    /// Returns the weight that the next call may carry: nothing while as much is under way as may be.
    fn room(&self) -> usize {
        let limit = self.flow.limit();
        if self.weight_under_way >= limit { 0 } else { limit.div_ceil(self.slots).min(MOST_WEIGHT) }
    }
}

/// What is known of a call when it ends.
pub(super) struct CallSpan {
    pub(super) began: Instant,
    pub(super) weight: usize,
    pub(super) is_full: bool,
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroUsize;

    use tokio::sync::oneshot;
    use tower_quota_core::{Charge, Decision, Key, Name, Operation, Quota};

    use super::super::caller::now;
    use super::*;
    use crate::breaker::DEFAULT_FAILURES;
    use crate::error::RedisStoreError;
    use crate::keys::KeyNames;
    use crate::question::Question;

    const DEADLINE: Duration = Duration::from_millis(60);

    type Answered = oneshot::Receiver<Result<Decision, RedisStoreError>>;

    fn queue() -> Queue {
        Queue::new(2, DEADLINE, Breaker::new(DEFAULT_FAILURES, DEADLINE))
    }

    /// Makes a decision of weight 1.
    fn pending(expiry: Option<Instant>) -> (Pending, Answered) {
        let (quota, key) = (Quota::per_hour(10), Key::owned(Name::new("user"), "ann"));
        let keys = KeyNames::new("quota", None, false, NonZeroUsize::MIN).unwrap();
        let question = Question::new(Operation::Check, &[Charge::new("hour", &quota, &key)], &keys);
        let (answer, answered) = oneshot::channel();
        (Pending { question, answer, expiry }, answered)
    }

    fn fill(queue: &mut Queue, decisions: usize, expiry: Instant) -> Vec<Answered> {
        let each = (0..decisions).map(|_| {
            let (pending, answered) = pending(Some(expiry));
            queue.push(pending);
            answered
        });
        each.collect()
    }

    fn ended(queue: &mut Queue, batch: &Batch, began: Instant, ended: Instant) {
        let span = CallSpan { began, weight: batch.weight, is_full: batch.is_full };
        assert!(queue.call_ended(&span, Some(CallEnd::Answered), ended).is_empty());
    }

    #[test]
    fn late_and_abandoned_decisions_are_not_sent() {
        let (start, mut queue, mut callers) = (now(), queue(), Vec::new());
        for millis in [Some(10), Some(20), Some(30), Some(40), None] {
            let (pending, answered) = pending(millis.map(|millis| start + Duration::from_millis(millis)));
            queue.push(pending);
            callers.push(answered);
        }
        drop(callers.remove(2));
        let batch = queue.take_batch(start + Duration::from_millis(20));
        let expiries = |decisions: &[Pending]| -> Vec<_> {
            decisions.iter().map(|pending| pending.expiry.map(|expiry| (expiry - start).as_millis())).collect()
        };
        assert_eq!(expiries(&batch.decisions), [Some(40), None]);
        assert_eq!(expiries(&batch.late), [Some(10), Some(20)]);
        assert!(queue.take_batch(start).decisions.is_empty());
    }

    #[test]
    fn decision_without_time_for_a_call_is_not_sent() {
        let (start, mut queue) = (now(), queue());
        let callers = fill(&mut queue, 1, start + DEADLINE);
        let batch = queue.take_batch(start);
        let now = start + DEADLINE / 2;
        ended(&mut queue, &batch, start, now);
        ended(&mut queue, &Batch::default(), start, now);
        let more = fill(&mut queue, 1, now + DEADLINE / 3);
        let batch = queue.take_batch(now);
        assert_eq!((batch.decisions.len(), batch.late.len()), (0, 1), "a call takes half the deadline");
        drop((callers, more));
    }

    #[test]
    fn weight_under_way_stays_below_the_limit() {
        let (mut now, mut queue) = (now(), queue());
        let _callers = fill(&mut queue, 10_000, now + 100 * DEADLINE);
        // Each call takes 1 ms for each decision under way, so that at most 20 may be.
        for _ in 0..20 {
            let batches = [queue.take_batch(now), queue.take_batch(now)];
            let weight = batches[0].weight + batches[1].weight;
            assert_eq!(queue.weight_under_way, weight);
            let began = now;
            now += Duration::from_millis(weight as u64);
            batches.iter().for_each(|batch| ended(&mut queue, batch, began, now));
        }
        let limit = queue.flow.limit();
        assert!((16..=24).contains(&limit), "{limit}");
        let (first, second) = (queue.take_batch(now), queue.take_batch(now));
        assert!(first.weight + second.weight <= limit + 1 && first.is_full);
        assert!(!queue.has_work(), "as much is under way as may be");
    }

    #[test]
    fn opening_breaker_returns_what_waits() {
        let (start, mut queue) = (now(), queue());
        let _callers = fill(&mut queue, 200, start + 100 * DEADLINE);
        let ticket = queue.push(pending(None).0);
        let mut now = start;
        for failure in 1..=DEFAULT_FAILURES.get() {
            let span = CallSpan { began: now, weight: 0, is_full: false };
            now += DEADLINE;
            let returned = queue.call_ended(&span, Some(CallEnd::Broken), now);
            assert_eq!(returned.len(), if failure == DEFAULT_FAILURES.get() { 201 } else { 0 });
        }
        assert!(!queue.is_waiting(ticket) && queue.waiting_weight == 0);
        assert_eq!(queue.admit(now), Err(NotSent::BreakerOpen));
    }

    #[test]
    fn long_queue_refuses_on_arrival() {
        let (start, mut queue) = (now(), queue());
        let _callers = fill(&mut queue, 10_000, start + 100 * DEADLINE);
        assert_eq!(queue.admit(start), Ok(()), "nothing is known of the server yet");
        let batch = queue.take_batch(start);
        let now = start + DEADLINE / 3;
        ended(&mut queue, &batch, start, now);
        ended(&mut queue, &Batch::default(), start, now);
        assert_eq!(queue.admit(now), Err(NotSent::Overloaded));
    }
}
