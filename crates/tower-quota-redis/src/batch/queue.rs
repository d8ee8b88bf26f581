//! The queue of one partition: decisions that wait, calls that are under way, and what may be sent.

use core::time::Duration;
use std::collections::VecDeque;
use std::time::Instant;

use tower_quota_core::Operation;

use super::call_span::{CallEnd, CallSpan};
use super::flow::{Flow, Load};
use super::pending::Pending;
use crate::breaker::Breaker;
use crate::stats::RedisStats;

/// The most that one call carries, in weights of a plain decision about one key. That takes the server 2 to 5
/// microseconds, so a call takes it a quarter to six tenths of a millisecond.
pub(super) const MOST_WEIGHT: usize = 128;

/// The most refunds that wait at once.
const MOST_REFUNDS: usize = 10_000;

/// The state that decides whether and when a decision is sent, under one lock.
pub(super) struct Queue {
    waiting: VecDeque<Pending>,
    waiting_weight: usize,
    waiting_refunds: usize,
    /// Decisions that have left the queue so far.
    left: u64,
    slots: usize,
    free_slots: Vec<usize>,
    /// One more slot, for a call that its caller makes itself while nothing else is going on.
    is_direct_free: bool,
    /// The weight of the direct call under way.
    direct_weight: usize,
    weight_under_way: usize,
    flow: Flow,
    pub(super) breaker: Breaker,
    decisions: u64,
    calls: u64,
    /// Times that the breaker has opened and closed.
    openings: u64,
    closings: u64,
}

/// The reason for which a decision is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotSent {
    BreakerOpen,
    Overloaded,
    NoRuntime,
}

/// A decision's place in the queue.
#[derive(Clone, Copy)]
pub(super) struct Ticket(u64);

/// The decisions of one call.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) decisions: Vec<Pending>,
    pub(super) weight: usize,
    pub(super) load: Load,
    /// Decisions with too little time left, to be refused.
    pub(super) late: Vec<Pending>,
}

impl Queue {
    pub(super) fn new(slots: usize, deadline: Duration, breaker: Breaker) -> Self {
        Self {
            waiting: VecDeque::new(),
            waiting_weight: 0,
            waiting_refunds: 0,
            left: 0,
            slots,
            free_slots: (0..slots).rev().collect(),
            is_direct_free: true,
            direct_weight: 0,
            weight_under_way: 0,
            flow: Flow::new(deadline, slots * MOST_WEIGHT),
            breaker,
            decisions: 0,
            calls: 0,
            openings: 0,
            closings: 0,
        }
    }

    /// Returns how many decisions wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns how many calls are under way.
    pub(super) fn calls_under_way(&self) -> usize {
        self.slots - self.free_slots.len() + usize::from(!self.is_direct_free)
    }

    /// Returns why a decision that arrives now is refused, if it is. Refunds wait their turn, however long it takes: units
    /// that are not given back would be lost to their client.
    pub(super) fn admit(&mut self, operation: Operation, now: Instant) -> Result<(), NotSent> {
        if !self.breaker.is_closed() {
            return if self.breaker.admit(now) {
                Ok(())
            } else {
                Err(NotSent::BreakerOpen)
            };
        }
        let is_admitted = match operation {
            Operation::Refund { .. } => self.waiting_refunds < MOST_REFUNDS,
            _ => self.flow.is_in_time(self.waiting_weight, now),
        };
        if is_admitted {
            Ok(())
        } else {
            Err(NotSent::Overloaded)
        }
    }

    pub(super) fn push(&mut self, pending: Pending) -> Ticket {
        self.waiting_weight += pending.question.weight();
        self.waiting_refunds += usize::from(pending.is_refund());
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
            self.direct_weight = self
                .waiting
                .front()
                .map_or(0, |pending| pending.question.weight());
            self.slots
        })
    }

    pub(super) fn free_slot(&mut self, slot: usize) {
        if slot == self.slots {
            (self.is_direct_free, self.direct_weight) = (true, 0);
        } else {
            self.free_slots.push(slot);
        }
    }

    /// Takes those that have waited longest, as many as may be sent in one call. A decision that weighs more than that
    /// is sent alone. Decisions that cannot be answered in time are set apart, and those that lost their callers
    /// dropped; refunds are sent all the same.
    pub(super) fn take_batch(&mut self, now: Instant) -> Batch {
        self.take(now, usize::MAX)
    }

    /// Takes the decision that has waited longest, for the call that its caller makes: others would depend on that caller.
    pub(super) fn take_first(&mut self, now: Instant) -> Batch {
        self.take(now, 1)
    }

    fn take(&mut self, now: Instant, most: usize) -> Batch {
        let (room, needed) = (self.room(), self.flow.time_needed(now));
        let mut batch = Batch::default();
        if room == 0 {
            return batch;
        }
        if self.weight_under_way == 0 {
            batch.load = Load::Alone;
        }
        while let Some(next) = self
            .waiting
            .front()
            .filter(|_| batch.decisions.len() < most)
        {
            let weight = next.question.weight();
            let is_refund = next.is_refund();
            let has_no_time = next
                .expiry
                .is_some_and(|expiry| expiry.saturating_duration_since(now) <= needed);
            let is_late = has_no_time && !is_refund;
            let is_sent = is_refund || !next.answer.is_closed() && !is_late;
            if is_sent && batch.weight + weight > room && !batch.decisions.is_empty() {
                batch.load = Load::HeldBack;
                break;
            }
            let Some(next) = self.waiting.pop_front() else {
                break;
            };
            self.waiting_weight -= weight;
            self.waiting_refunds -= usize::from(is_refund);
            self.left += 1;
            if is_sent {
                batch.weight += weight;
                batch.decisions.push(next);
            } else if is_late {
                batch.late.push(next);
            }
        }
        self.weight_under_way += batch.weight;
        self.note_left_trial(now);
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
        stats.breaker_openings += self.openings;
        stats.breaker_closings += self.closings;
    }

    /// Notes the end of a call, `None` if it was cut short. Returns the waiting decisions if that opens the breaker.
    pub(super) fn call_ended(
        &mut self,
        batch: &CallSpan,
        end: Option<CallEnd>,
        now: Instant,
    ) -> Vec<Pending> {
        self.weight_under_way -= batch.weight;
        match end {
            Some(CallEnd::Answered) => {
                self.flow.measure(batch.began, now, batch.load);
                if self.breaker.answered(batch.began) {
                    self.closings += 1;
                    self.flow.restart(now);
                }
                return Vec::new();
            }
            Some(CallEnd::Late) => self.flow.measure(batch.began, now, batch.load),
            Some(CallEnd::Broken) => {}
            None => return Vec::new(),
        }
        if !self.breaker.failed(batch.began, now) {
            return Vec::new();
        }
        self.openings += 1;
        self.left += self.waiting.len() as u64;
        (self.waiting_weight, self.waiting_refunds) = (0, 0);
        core::mem::take(&mut self.waiting).into()
    }

    /// Takes the decisions that no task will send, since the runtime has ended. Refunds wait for another one, if there may
    /// be one.
    pub(super) fn take_stranded(&mut self, has_successor: bool, now: Instant) -> Vec<Pending> {
        if self.free_slots.len() < self.slots {
            // A task that has a slot looks again before it ends.
            return Vec::new();
        }
        let (refunds, stranded): (Vec<_>, Vec<_>) = self
            .waiting
            .drain(..)
            .partition(|pending| has_successor && pending.is_refund());
        self.left += stranded.len() as u64;
        self.waiting_weight = refunds
            .iter()
            .map(|pending| pending.question.weight())
            .sum();
        self.waiting_refunds = refunds.len();
        self.waiting = refunds.into();
        self.note_left_trial(now);
        stranded
    }

    /// Lets the next decision be the trial, if the present one is neither waiting nor under way.
    fn note_left_trial(&mut self, now: Instant) {
        if self.waiting.is_empty() && self.weight_under_way == 0 {
            self.breaker.trial_left(now);
        }
    }

    /// Returns the weight that the next call may carry: nothing while as much is under way as may be.
    fn room(&self) -> usize {
        let limit = self.flow.limit();
        // A direct call does not count: its caller may poll no more, and others would wait for it.
        if self.weight_under_way.saturating_sub(self.direct_weight) >= limit {
            0
        } else {
            limit.div_ceil(self.slots).min(MOST_WEIGHT)
        }
    }
}

#[cfg(test)]
mod overload;
#[cfg(test)]
mod tests;
