//! Limits the weight in flight, as a congestion window of TCP does.
//!
//! The window shrinks while calls are slow for the distance of the server, until the calls of all stores fit into the
//! queue of the server.

use core::time::Duration;
use std::time::Instant;

use super::call_span::CallSpan;

/// Enough for a server that is 20 ms away.
const MOST: usize = 4_096;
const START: usize = 128;
/// The limit after an outage.
const RESTART: usize = 16;
const CALM: Duration = Duration::from_secs(1);
/// The limit grows by this part of an answered call, and by at least 1.
const GROWTH: usize = 8;

#[derive(Debug)]
pub(super) struct Window {
    limit: usize,
    deadline: Duration,
    /// The time of the fastest call.
    distance: Duration,
    shrunk_at: Option<Instant>,
}

impl Window {
    pub(super) fn new(deadline: Duration) -> Self {
        Self {
            limit: START,
            deadline,
            distance: deadline,
            shrunk_at: None,
        }
    }

    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    /// Returns whether more than the regular senders may send.
    pub(super) fn is_calm(&self, now: Instant) -> bool {
        // A decision that waits for one of two distant calls would always be late.
        self.distance * 3 / 2 > self.deadline
            || self
                .shrunk_at
                .is_none_or(|shrunk_at| now.saturating_duration_since(shrunk_at) > CALM)
    }

    pub(super) fn restart(&mut self) {
        self.limit = RESTART;
    }

    pub(super) fn note(&mut self, call: &CallSpan, ended: Instant, under_way: usize) {
        let took = ended.saturating_duration_since(call.began);
        self.distance = self.distance.min(took);
        // A slower call has waited for half of the time that the distance leaves.
        let slow = self.distance + (self.deadline - self.distance) / 2;
        if took < slow {
            // A small load shows no need for a larger window.
            if 2 * under_way >= self.limit {
                self.limit = MOST.min(self.limit + (call.weight / GROWTH).max(1));
            }
        } else if self
            .shrunk_at
            .is_none_or(|shrunk_at| call.began >= shrunk_at)
        {
            // Calls that were sent together shrink the window once.
            self.limit = (self.limit / 2).max(1);
            self.shrunk_at = Some(ended);
        }
    }
}
