//! Answers of synchronous checks.

use core::time::Duration;

use crate::outcome::Outcome;
use crate::status::LimitStatus;

/// The answer of [`Limiter::check_now`](crate::Limiter::check_now).
#[derive(Clone, Copy, Debug)]
#[must_use = "a check that nothing reads limits nothing"]
pub struct Answer(pub(crate) LimitStatus);

impl Answer {
    /// Returns whether your request may pass now.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        !self.0.outcome.is_refusal()
    }

    /// Returns the remaining units of the tightest limit.
    pub const fn remaining(&self) -> u64 {
        self.0.remaining()
    }

    /// Returns the wait of a refused request, unless the request can never pass.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.0.outcome {
            Outcome::Refuse(retry) => Some(retry),
            _ => None,
        }
    }
}
