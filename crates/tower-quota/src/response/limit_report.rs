//! The status of one limit, as header styles read it.

use core::time::Duration;

use tower_quota_core::{Algorithm, LimitStatus, Name, Outcome, Quota};

use super::report::Report;
use super::text::epoch_second;
use crate::limit::Limit;

/// The status of one limit after a decision, for header styles.
#[derive(Clone, Copy, Debug)]
pub struct LimitReport<'a> {
    pub(super) status: &'a LimitStatus,
    pub(super) limit: &'a Limit,
    pub(super) report: &'a Report,
}

impl<'a> LimitReport<'a> {
    /// Returns the limit's name.
    #[must_use]
    pub const fn name(&self) -> Name {
        self.limit.name
    }

    /// Returns the unit that the limit counts, if not requests: see [`Limit::unit`].
    #[must_use]
    pub const fn unit(&self) -> Option<Name> {
        self.limit.unit
    }

    /// Returns the status that the store gave.
    #[must_use]
    pub const fn status(&self) -> &'a LimitStatus {
        self.status
    }

    /// Returns the quota that this request was counted by: the limit's own, or another one.
    pub fn quota(&self) -> &'a Quota {
        self.report
            .other_quota(self.limit.name)
            .unwrap_or(&self.limit.quota)
    }

    /// Returns the capacity: the maximum units at once, for a local decision this instance's share.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.status.limit
    }

    /// Returns the remaining units.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.status.remaining()
    }

    /// Returns whether this limit refused the request.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.status.outcome.is_refusal()
    }

    /// Returns the wait of the refused request, with [jitter](crate::RateLimitLayer::retry_jitter).
    ///
    /// It is `None` if the limit admitted the request, or would never admit it.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.status.outcome {
            Outcome::Refuse(retry) => Some(retry.saturating_add(self.report.jitter)),
            _ => None,
        }
    }

    /// Returns the time until the limit is full, and never less than [`retry_after`](Self::retry_after).
    #[must_use]
    pub fn reset_after(&self) -> Duration {
        let reset = self.status.reset_after();
        self.retry_after().map_or(reset, |retry| retry.max(reset))
    }

    /// Returns the second of the Unix epoch at which the limit is full, by the clock that decided.
    #[must_use]
    pub fn reset_at_secs(&self) -> u64 {
        self.report.decision.as_ref().map_or(0, |decision| {
            epoch_second(decision.at(), self.reset_after())
        })
    }

    /// Returns the time over which the client should spread the remaining units: `t` of draft 11.
    ///
    /// It is the time of the remaining units at the rate of the quota, and at most the rest of a fixed window. With no units
    /// left it is the time until a unit is available, for a sliding window by its rate. For a refusal it is
    /// [`retry_after`](Self::retry_after). A client that spreads its units over this time is always admitted, and never
    /// slower than the rate.
    #[must_use]
    pub fn effective_window(&self) -> Option<Duration> {
        if self.is_refused() {
            return self.retry_after();
        }
        let (quota, reset) = (self.quota(), self.status.reset_after());
        Some(match (self.remaining(), quota.algorithm()) {
            (0, algorithm) if algorithm.is_bucket() => {
                reset.saturating_sub(refill_of_all_but_one(quota))
            }
            (0, Algorithm::FixedWindow) => reset,
            (0, _) => reset.min(time_of(1, quota)),
            (remaining, Algorithm::FixedWindow) => reset.min(time_of(remaining, quota)),
            (remaining, _) => time_of(remaining, quota),
        })
    }

    /// Returns the key of the client's [partition](crate::RateLimitLayer::partition_keys), in base64.
    #[must_use]
    pub fn partition_key(&self) -> Option<&'a str> {
        self.report.partition_key(self.limit.name)
    }
}

/// Returns the time in which an empty bucket gains all units but one.
const fn refill_of_all_but_one(bucket: &Quota) -> Duration {
    // The product is below 2^53, like all numbers of grains.
    Duration::from_micros((bucket.capacity() - 1) * bucket.grain() / bucket.refill())
}

/// Returns the time in which a quota's rate allows these units, rounded up to a microsecond.
fn time_of(units: u64, quota: &Quota) -> Duration {
    let micros = (quota.period().as_micros() * u128::from(units)).div_ceil(quota.units().into());
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}
