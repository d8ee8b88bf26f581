//! The answer of a synchronous check.

use core::time::Duration;

use crate::outcome::Outcome;
use crate::status::LimitStatus;

/// The answer of [`Limiter::check_now`](crate::Limiter::check_now), smaller than a [`Decision`](crate::Decision).
#[derive(Clone, Copy, Debug)]
#[must_use = "a check that nothing reads limits nothing"]
pub struct Answer(
    /// The status of the tightest limit, whose outcome is that of the request.
    pub(crate) LimitStatus,
);

impl Answer {
    /// Returns whether the request may pass now.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        !self.0.outcome.is_refusal()
    }

    /// Returns the units left of the tightest limit.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.0.remaining()
    }

    /// Returns the wait after which a refused request fits; `None` if it was allowed, or can never pass.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.0.outcome {
            Outcome::Refuse(retry) => Some(retry),
            _ => None,
        }
    }
}
