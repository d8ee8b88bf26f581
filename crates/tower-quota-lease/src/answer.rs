use core::time::Duration;

use tower_quota_core::{LimitStatus, Timestamp};

#[derive(Clone, Copy, Default)]
pub(crate) struct LeaseAnswer {
    pub(crate) remaining: u64,
    reset_after: Duration,
    pub(crate) times: AnswerTimes,
}

/// Two instants by the clock of this instance, and `at` by the clock of the store.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AnswerTimes {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) at: Timestamp,
}

impl LeaseAnswer {
    pub(crate) fn new(status: &LimitStatus, times: AnswerTimes) -> Self {
        Self {
            remaining: status.remaining(),
            reset_after: status.reset_after(),
            times,
        }
    }

    pub(crate) fn round_trip(&self) -> u64 {
        self.times.received.saturating_sub(self.times.sent)
    }

    pub(crate) fn reset_after(&self, now: u64) -> Duration {
        let age = now.saturating_sub(self.times.sent);
        self.reset_after.saturating_sub(Duration::from_micros(age))
    }
}

pub(crate) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
