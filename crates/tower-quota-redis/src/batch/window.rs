//! Limits the weight in flight, like a congestion window of TCP.
//!
//! The window shrinks while calls are slow for the distance of the server, until the calls of all stores fit into the
//! queue of the server.

use core::time::Duration;
use std::time::Instant;

use super::call_span::CallSpan;
use super::distance::Distance;

/// The highest limit, which is enough for a server that is 20 ms away.
const MOST: usize = 4_096;
const START: usize = 128;
const RESTART: usize = 16;
const CALM: Duration = Duration::from_secs(1);
/// The limit grows by this part of an answered call, and by at least 1.
const GROWTH: usize = 8;
/// The load is light below this part of the limit.
const LIGHT: usize = 4;
/// A call that takes less than this, and less than this part of the deadline, has found a server that is near and free.
const NEAR: Duration = Duration::from_millis(5);
const NEAR_PART: u32 = 16;
/// A window that shrinks for so long ends every queue, so calls that are still slow have a long way.
const LONGEST_QUEUE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Window {
    limit: usize,
    deadline: Duration,
    distance: Distance,
    /// Whether the limit grows by whole calls, since the distance has become longer. The next slow call ends this.
    is_starting: bool,
    shrunk_at: Option<Instant>,
    /// The end of the first slow call after a fast call.
    slow_since: Option<Instant>,
    /// The times of the last two calls, because a single call may be late for any reason.
    last_took: [Duration; 2],
}

impl Window {
    pub(super) fn new(deadline: Duration) -> Self {
        Self {
            limit: START,
            deadline,
            distance: Distance::new(deadline),
            is_starting: false,
            shrunk_at: None,
            slow_since: None,
            last_took: [deadline; 2],
        }
    }

    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn distance(&self) -> Duration {
        self.distance.get()
    }

    /// Returns whether more than the regular senders may send.
    pub(super) fn is_calm(&self, now: Instant) -> bool {
        // Decisions that wait for one of two distant calls would be late, so let further senders
        // send.
        self.distance.get() * 9 / 5 > self.deadline
            || self
                .shrunk_at
                .is_none_or(|shrunk_at| now.saturating_duration_since(shrunk_at) > CALM)
    }

    /// Returns whether one of the last calls was so short that it waited in no queue.
    pub(super) fn was_near(&self) -> bool {
        self.shortest_of_last() < NEAR.min(self.deadline / NEAR_PART)
    }

    /// Returns whether the last calls took so much longer than the distance that they waited for other calls.
    pub(super) fn has_queue(&self) -> bool {
        self.shortest_of_last() > self.distance.get() * 2
    }

    fn shortest_of_last(&self) -> Duration {
        self.last_took[0].min(self.last_took[1])
    }

    pub(super) fn restart(&mut self) {
        self.limit = RESTART;
    }

    pub(super) fn note(&mut self, call: &CallSpan, ended: Instant, under_way: usize) {
        let took = ended.saturating_duration_since(call.began);
        let is_in_time = took < self.deadline;
        let was_near = self.was_near() && self.is_calm(ended);
        self.last_took = [took, self.last_took[0]];
        // Under load, a call may have waited in a queue, and a queue that stands is not distance.
        if took < self.distance.get() || LIGHT * under_way < self.limit {
            self.distance.note(took, ended);
        }
        // A slow call has waited at the server for half of the time after the distance.
        let distance = self.distance.get();
        let slow = distance + (self.deadline - distance) / 2;
        // A queue grows from call to call. If a call is suddenly slow with almost nothing of this store before it,
        // the server is farther away.
        let is_farther = was_near && self.limit >= START && LIGHT * call.under_way < START;
        if took < slow {
            self.slow_since = None;
            // Grow only under load. A small load does not show that the server can take more.
            if 2 * under_way >= self.limit {
                let growth = match self.is_starting {
                    true => call.weight,
                    false => (call.weight / GROWTH).max(1),
                };
                self.limit = MOST.min(self.limit + growth);
            }
            return;
        }
        if is_in_time && is_farther {
            self.move_away(took);
        } else if self
            .shrunk_at
            .is_none_or(|shrunk_at| call.began >= shrunk_at)
        {
            // A call without an answer in time says nothing about the way.
            if !is_in_time {
                self.slow_since = None;
            }
            let slow_since = *self.slow_since.get_or_insert(ended);
            if is_in_time && ended.saturating_duration_since(slow_since) >= LONGEST_QUEUE {
                self.move_away(took);
                return;
            }
            self.is_starting = is_in_time && self.limit == 1;
            if self.is_starting {
                // One decision makes no queue, so the server is this far away.
                self.distance.restart(took);
            }
            // Shrink once for calls that were sent together.
            self.limit = (self.limit / 2).max(1);
            self.shrunk_at = Some(ended);
        }
    }

    fn move_away(&mut self, distance: Duration) {
        self.distance.restart(distance);
        self.limit = START;
        self.shrunk_at = None;
        self.slow_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    #[test]
    fn calls_over_deadline_leave_least_window() {
        let (start, millis) = (now(), Duration::from_millis);
        let mut window = Window::new(millis(50));
        for number in 0..20 {
            let began = start + number * millis(60);
            window.note(
                &CallSpan {
                    began,
                    weight: 1,
                    under_way: 1,
                },
                began + millis(55),
                1,
            );
        }
        assert_eq!(window.limit(), 1);
        assert_eq!(window.distance(), millis(50));
    }

    #[test]
    fn longer_way_is_learned_within_a_second() {
        let (start, millis) = (now(), Duration::from_millis);
        let mut window = Window::new(millis(100));
        let mut at = start;
        let mut call = |window: &mut Window, took: Duration| {
            let (began, weight) = (at, window.limit());
            at += took;
            window.note(
                &CallSpan {
                    began,
                    weight,
                    under_way: weight,
                },
                at,
                weight,
            );
        };
        for _ in 0..10 {
            call(&mut window, millis(1));
        }
        let mut calls = 0;
        while window.distance() < millis(60) || window.limit() < 64 {
            call(&mut window, millis(60));
            calls += 1;
        }
        assert!(calls <= 16, "{calls}");
    }
}
