//! The answer of a synchronous check.

use core::time::Duration;

use crate::decision::Decision;
use crate::outcome::Outcome;
use crate::status::LimitStatus;

/// The answer of [`Limiter::check_now`](crate::Limiter::check_now), smaller than a [`Decision`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a check that nothing reads limits nothing"]
pub struct Answer {
    outcome: Outcome,
    tightest: Option<LimitStatus>,
}

impl Answer {
    pub(super) const fn of_one(status: LimitStatus) -> Self {
        Self {
            outcome: status.outcome,
            tightest: Some(status),
        }
    }

    pub(super) fn of_decision(decision: &Decision) -> Self {
        Self {
            outcome: decision.outcome(),
            tightest: decision.tightest().copied(),
        }
    }

    /// Returns whether the request may pass now.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        !self.outcome.is_refusal()
    }

    /// Returns the units left of the tightest limit.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        match &self.tightest {
            Some(status) => status.remaining(),
            None => u64::MAX,
        }
    }

    /// Returns the wait after which a refused request fits; `None` if it was allowed, or can never pass.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.outcome {
            Outcome::Refuse(retry) => Some(retry),
            _ => None,
        }
    }
}
