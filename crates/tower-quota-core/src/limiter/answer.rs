//! The answer of a synchronous check.

use core::time::Duration;

use crate::algorithm::bucket;
use crate::decision::Decision;
use crate::outcome::Outcome;
use crate::quota::Quota;

/// The answer of [`Limiter::check_now`](crate::Limiter::check_now): small, and computed when it is read.
#[derive(Clone, Copy, Debug)]
#[must_use = "a check that nothing reads limits nothing"]
pub struct Answer<'a>(Form<'a>);

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    /// A single bucket. `used` counts the grains after the check.
    Bucket {
        quota: &'a Quota,
        used: u64,
        cost: u64,
        is_allowed: bool,
    },
    Known {
        outcome: Outcome,
        remaining: u64,
    },
}

impl<'a> Answer<'a> {
    #[inline]
    pub(super) const fn of_bucket(
        quota: &'a Quota,
        used: u64,
        cost: u64,
        is_allowed: bool,
    ) -> Self {
        Self(Form::Bucket {
            quota,
            used,
            cost,
            is_allowed,
        })
    }

    pub(super) fn of_decision(decision: &Decision) -> Self {
        let remaining = decision
            .tightest()
            .map_or(u64::MAX, |status| status.remaining());
        Self(Form::Known {
            outcome: decision.outcome(),
            remaining,
        })
    }

    /// Returns whether the request may pass now.
    #[must_use]
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        match self.0 {
            Form::Bucket { is_allowed, .. } => is_allowed,
            Form::Known { outcome, .. } => !outcome.is_refusal(),
        }
    }

    /// Returns the units left of the tightest limit.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        match self.0 {
            Form::Bucket { quota, used, .. } => bucket::remaining(quota, used),
            Form::Known { remaining, .. } => remaining,
        }
    }

    /// Returns the wait after which a refused request fits; `None` if it was allowed, or can never pass.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.0 {
            Form::Bucket {
                quota,
                used,
                cost,
                is_allowed: false,
            } if cost <= quota.capacity() => {
                Some(Duration::from_micros(bucket::until_fits(quota, used, cost)))
            }
            Form::Known {
                outcome: Outcome::Refuse(retry),
                ..
            } => Some(retry),
            _ => None,
        }
    }
}
