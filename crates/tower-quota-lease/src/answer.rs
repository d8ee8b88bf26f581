//! The last answer of the store about a limit.

use core::time::Duration;

use tower_quota_core::{LimitStatus, Timestamp};

/// The state of a limit in an answer of the store, with the instants of the call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) remaining: u64,
    pub(crate) reset_after: u64,
    pub(crate) times: AnswerTimes,
}

/// The instants of a call: two on the clock of this instance, and the store's instant of the decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerTimes {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) at: Timestamp,
}

impl Answer {
    pub(crate) fn new(status: &LimitStatus, times: AnswerTimes) -> Self {
        Self {
            remaining: status.remaining(),
            reset_after: micros(status.reset_after()),
            times,
        }
    }

    /// Returns whether the store decided `other` later. At a single instant, the later decision leaves fewer units.
    pub(crate) fn precedes(&self, other: &Self) -> bool {
        let (at, other_at) = (self.times.at, other.times.at);
        at < other_at || at == other_at && self.remaining > other.remaining
    }

    pub(crate) fn round_trip(&self) -> u64 {
        self.times.received.saturating_sub(self.times.sent)
    }

    /// Returns the latest possible instant on the store's clock.
    pub(crate) fn store_now(&self, now: u64) -> Timestamp {
        let elapsed = now.saturating_sub(self.times.sent);
        self.times.at + Duration::from_micros(elapsed)
    }

    pub(crate) fn reset_after(&self, now: u64) -> Duration {
        let full_at = self.times.sent.saturating_add(self.reset_after);
        Duration::from_micros(full_at.saturating_sub(now))
    }
}

pub(crate) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
