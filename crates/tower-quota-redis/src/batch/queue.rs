use core::time::Duration;
use std::collections::VecDeque;
use std::time::Instant;

use super::call_span::{CallEnd, CallSpan};
use super::pending::Pending;
use super::window::Window;
use crate::breaker::Breaker;
use crate::stats::RedisStats;
use crate::template::Template;

/// The maximum weight of a call. The server needs 2 to 5 microseconds for each unit of weight.
pub(super) const MOST_WEIGHT: usize = 128;
const MOST_WAITING: usize = 10_000;
/// The calls with one decision that show a caller with one request in flight.
const LONE_CALLS: usize = 16;
/// The time between two paced calls of a partition.
const PACE: Duration = Duration::from_micros(250);

pub(super) struct Queue {
    deadline: Duration,
    waiting: VecDeque<Pending>,
    settlements: VecDeque<Pending>,
    waiting_weight: usize,
    arrivals: u64,
    regular_senders: usize,
    pace: Duration,
    senders: usize,
    is_pacing: bool,
    last_sent: Option<Instant>,
    /// The end of the last call, or the start of the only call.
    silent_since: Option<Instant>,
    /// The calls with one decision since the last call with several.
    lone_calls: usize,
    calls_under_way: usize,
    weight_under_way: usize,
    window: Window,
    pub(super) breaker: Breaker,
    decisions: u64,
    calls: u64,
    openings: u64,
    closings: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotSent {
    BreakerOpen,
    Overloaded,
    NoRuntime,
}

#[derive(Clone, Copy)]
pub(super) struct Ticket(u64);

#[derive(Default)]
pub(super) struct Batch {
    pub(super) number: u64,
    pub(super) decisions: Vec<Pending>,
    pub(super) weight: usize,
    /// The weight in flight with the batch.
    pub(super) under_way: usize,
}

pub(super) enum Step {
    Send(Batch),
    WaitUntil(Instant),
    End,
}

impl Queue {
    pub(super) fn new(
        regular_senders: usize,
        partitions: usize,
        deadline: Duration,
        breaker: Breaker,
    ) -> Self {
        let partitions = u32::try_from(partitions).unwrap_or(u32::MAX);
        Self {
            pace: PACE.saturating_mul(partitions),
            deadline,
            waiting: VecDeque::new(),
            settlements: VecDeque::new(),
            waiting_weight: 0,
            arrivals: 0,
            regular_senders,
            senders: 0,
            is_pacing: false,
            last_sent: None,
            silent_since: None,
            lone_calls: 0,
            calls_under_way: 0,
            weight_under_way: 0,
            window: Window::new(deadline),
            breaker,
            decisions: 0,
            calls: 0,
            openings: 0,
            closings: 0,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.is_empty() && self.calls_under_way == 0
    }

    /// Returns whether the next decision may leave at once. A burst leaves in fewer calls if its first decision waits
    /// for the others, so decisions must have come one by one for a while.
    pub(super) fn is_lone(&self) -> bool {
        self.is_idle() && self.lone_calls >= LONE_CALLS
    }

    pub(super) fn admit(&mut self, template: &Template, now: Instant) -> Result<(), NotSent> {
        if !self.breaker.admit(now) {
            return Err(NotSent::BreakerOpen);
        }
        let is_full = if Pending::settles(template) {
            self.settlements.len() >= MOST_WAITING
        } else {
            self.waiting.len() >= MOST_WAITING
        };
        if is_full {
            Err(NotSent::Overloaded)
        } else {
            Ok(())
        }
    }

    pub(super) fn push(&mut self, mut pending: Pending) -> Ticket {
        self.waiting_weight += pending.request.weight();
        self.arrivals += 1;
        pending.number = self.arrivals;
        if Pending::settles(&pending.request.template) {
            self.settlements.push_back(pending);
        } else {
            self.waiting.push_back(pending);
        }
        Ticket(self.arrivals)
    }

    pub(super) fn is_waiting(&self, ticket: Ticket) -> bool {
        self.waiting
            .binary_search_by_key(&ticket.0, |pending| pending.number)
            .is_ok()
    }

    pub(super) fn needs_sender(&self, now: Instant) -> bool {
        let is_needed = self.senders < self.regular_senders
            || self.may_send_further(self.senders + 1, now)
                && (!self.is_pacing || self.is_full_call_waiting());
        is_needed && self.has_work()
    }

    /// Returns whether so many senders may send small calls too. A distant server has calls on the way to it. The calls
    /// to a nearby server would only wait in its queue, where fewer calls with more decisions are faster. So would calls to any
    /// server while a queue stands there.
    fn may_send_further(&self, senders: usize, now: Instant) -> bool {
        let further = senders.saturating_sub(self.regular_senders);
        let paced = self
            .pace
            .saturating_mul(u32::try_from(further).unwrap_or(u32::MAX));
        self.window.is_calm(now)
            && (self.is_full_call_waiting()
                || paced <= self.window.distance() && !self.window.has_queue()
                || self.is_silent(now))
    }

    /// Returns whether a server that was near may have moved away. The first answer over the longer way is too late for decisions
    /// that wait for it.
    fn is_silent(&self, now: Instant) -> bool {
        self.window.was_near()
            && self
                .silent_since
                .is_some_and(|since| now.saturating_duration_since(since) > self.deadline / 4)
    }

    const fn is_full_call_waiting(&self) -> bool {
        self.waiting_weight >= MOST_WEIGHT
    }

    pub(super) fn begin_sender(&mut self, now: Instant) -> bool {
        let begins = self.needs_sender(now);
        self.senders += usize::from(begins);
        begins
    }

    pub(super) fn sender_ended(&mut self, is_pacing: bool) {
        self.senders -= 1;
        self.is_pacing &= !is_pacing;
    }

    /// Returns the next step of a sender. Regular senders keep a nearby server busy. If the server
    /// is far away, further senders make paced calls.
    pub(super) fn next_step(&mut self, now: Instant) -> Step {
        if !self.has_work() {
            return Step::End;
        }
        let is_regular = self.senders <= self.regular_senders;
        if !is_regular && !self.may_send_further(self.senders, now) {
            return Step::End;
        }
        let due = self
            .last_sent
            .map_or(now, |last_sent| last_sent + self.pace);
        if is_regular || self.is_full_call_waiting() || due <= now {
            return Step::Send(self.take_batch(now));
        }
        if self.is_pacing {
            return Step::End;
        }
        self.is_pacing = true;
        Step::WaitUntil(due)
    }

    pub(super) fn has_paced(&mut self) {
        self.is_pacing = false;
    }

    fn take_batch(&mut self, now: Instant) -> Batch {
        let mut batch = Batch::default();
        let room = MOST_WEIGHT.min(self.window.limit().saturating_sub(self.weight_under_way));
        while let Some(pending) = self.take_next(now, room, batch.weight) {
            let weight = pending.request.weight();
            self.waiting_weight -= weight;
            let is_settlement = Pending::settles(&pending.request.template);
            if is_settlement || !pending.answer.is_closed() {
                batch.weight += weight;
                batch.decisions.push(pending);
            }
        }
        if batch.decisions.is_empty() {
            self.note_left_probe(now);
            return batch;
        }
        batch
            .decisions
            .sort_unstable_by_key(|pending| pending.number);
        self.weight_under_way += batch.weight;
        batch.under_way = self.weight_under_way;
        if self.calls_under_way == 0 {
            self.silent_since = Some(now);
        }
        self.calls_under_way += 1;
        self.last_sent = Some(now);
        self.lone_calls = match batch.decisions.len() {
            1 => self.lone_calls.saturating_add(1),
            _ => 0,
        };
        self.decisions += batch.decisions.len() as u64;
        self.calls += 1;
        batch.number = self.calls;
        batch
    }

    /// Takes the next decision if it fits. A decision heavier than a whole call is sent alone.
    fn take_next(&mut self, now: Instant, room: usize, taken: usize) -> Option<Pending> {
        let oldest = self.waiting.front();
        let is_backlog = oldest.is_some_and(|oldest| {
            now.saturating_duration_since(oldest.arrived) > self.deadline / 2
        });
        let is_settlement = self.settlements.front().is_some_and(|settlement| {
            // Settle first in a backlog, because units that are never given back would block
            // clients.
            is_backlog || oldest.is_none_or(|oldest| settlement.number < oldest.number)
        });
        let next = match (is_settlement, is_backlog) {
            (true, _) => self.settlements.front(),
            // In a backlog, the newest decision has the best chance to be in time.
            (false, true) => self.waiting.back(),
            (false, false) => oldest,
        };
        if taken > 0 && taken + next?.request.weight() > room {
            return None;
        }
        match (is_settlement, is_backlog) {
            (true, _) => self.settlements.pop_front(),
            (false, true) => self.waiting.pop_back(),
            (false, false) => self.waiting.pop_front(),
        }
    }

    pub(super) fn take_expired(&mut self, now: Instant) -> Vec<Pending> {
        let mut expired = Vec::new();
        while let Some(oldest) = self.waiting.front()
            && now.saturating_duration_since(oldest.arrived) >= self.deadline
        {
            self.waiting_weight -= oldest.request.weight();
            expired.extend(self.waiting.pop_front());
        }
        expired
    }

    pub(super) fn add_to(&self, stats: &mut RedisStats) {
        if self.breaker.is_closed() {
            stats.closed_partitions += 1;
        } else {
            stats.open_partitions += 1;
        }
        stats.queued += self.waiting.len() + self.settlements.len();
        stats.calls_under_way += self.calls_under_way;
        stats.decisions += self.decisions;
        stats.calls += self.calls;
        stats.breaker_openings += self.openings;
        stats.breaker_closings += self.closings;
    }

    /// Records the end of a call, `None` if it was cut short. Returns the waiting decisions if the breaker opens.
    pub(super) fn call_ended(
        &mut self,
        call: &CallSpan,
        end: Option<CallEnd>,
        now: Instant,
    ) -> Option<Vec<Pending>> {
        let under_way = self.weight_under_way;
        self.weight_under_way -= call.weight;
        self.calls_under_way -= 1;
        self.silent_since = Some(now);
        match end {
            Some(CallEnd::Answered) => {
                self.window.note(call, now, under_way);
                if self.breaker.answered(call.began) {
                    self.closings += 1;
                    self.window.restart();
                }
                return None;
            }
            Some(CallEnd::Late) => self.window.note(call, now, under_way),
            // A lost connection says nothing about the load of the server.
            Some(CallEnd::Broken) => {}
            None => return None,
        }
        if !self.breaker.failed(call.began, now) {
            return None;
        }
        self.openings += 1;
        Some(self.take_all())
    }

    fn take_all(&mut self) -> Vec<Pending> {
        self.waiting_weight = 0;
        let waiting = self.waiting.drain(..);
        waiting.chain(self.settlements.drain(..)).collect()
    }

    /// Takes all waiting decisions after the runtime has ended. Settlements wait for a possible successor.
    pub(super) fn take_stranded(&mut self, has_successor: bool, now: Instant) -> Vec<Pending> {
        if self.senders > 0 {
            // A running sender checks the queue again at its end.
            return Vec::new();
        }
        let settlements = core::mem::take(&mut self.settlements);
        let mut stranded = self.take_all();
        if has_successor {
            let weights = settlements.iter().map(|pending| pending.request.weight());
            self.waiting_weight = weights.sum();
            self.settlements = settlements;
        } else {
            stranded.extend(settlements);
        }
        self.note_left_probe(now);
        stranded
    }

    fn note_left_probe(&mut self, now: Instant) {
        if self.is_idle() {
            // The probe left the queue without a call, so let the next decision be the probe.
            self.breaker.probe_left(now);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.settlements.is_empty()
    }

    fn has_work(&self) -> bool {
        !self.is_empty() && self.weight_under_way < self.window.limit()
    }
}

#[cfg(test)]
mod tests;
