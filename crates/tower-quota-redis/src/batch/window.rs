//! Limits the weight under way, as TCP's congestion window does.

use core::time::Duration;
use std::time::Instant;

use super::call_span::CallSpan;

/// The most weight under way, enough for a server that is 20 ms away.
const MOST: usize = 4_096;
/// The most weight under way at first.
const START: usize = 128;
/// The most weight under way after an outage.
const RESTART: usize = 16;
const CALM: Duration = Duration::from_secs(1);
/// The limit grows by this part of the weight of an answered call, and by at least 1.
const GROWTH: usize = 8;

/// The window shrinks while calls are slow, until the calls of all stores fit into the queue of the server.
#[derive(Debug)]
pub(super) struct Window {
    limit: usize,
    /// The time of a call that leaves too little of the deadline.
    slow: Duration,
    shrunk_at: Option<Instant>,
}

impl Window {
    pub(super) fn new(deadline: Duration) -> Self {
        Self {
            limit: START,
            slow: deadline * 3 / 4,
            shrunk_at: None,
        }
    }

    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    /// Returns whether no call has been slow lately.
    pub(super) fn is_calm(&self, now: Instant) -> bool {
        self.shrunk_at
            .is_none_or(|shrunk_at| now.saturating_duration_since(shrunk_at) > CALM)
    }

    pub(super) fn restart(&mut self) {
        self.limit = RESTART;
    }

    /// Notes the end of a call, with an answer or at the deadline.
    pub(super) fn note(&mut self, call: &CallSpan, ended: Instant, under_way: usize) {
        if ended.saturating_duration_since(call.began) < self.slow {
            // An unused window says nothing about a larger window.
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
