//! The trait of header styles, and the report of a decision that they read.

use core::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tower_quota_core::{Algorithm, Decision, LimitStatus, Name, Outcome, Quota};

use super::limit_info::{LimitInfo, LimitInfos};
use super::report::Report;
use super::text::{ceil_secs, epoch_second, number_value};

/// Writes rate limit header fields in one convention: a header style.
///
/// All built-in [styles](crate::HeaderStyle) implement this trait. Add a custom style to a layer by
/// [`HeaderStyle::custom`](crate::HeaderStyle::custom):
///
/// ```
/// use http::header::{HeaderMap, HeaderName, HeaderValue};
/// use tower_quota::{HeaderReport, HeaderStyle, MemoryStore, Policy, RateLimitLayer, WriteHeaders};
///
/// /// Writes `X-Quota: 19/20` for the tightest limit.
/// struct Fraction;
///
/// static FIELDS: [HeaderName; 1] = [HeaderName::from_static("x-quota")];
///
/// impl WriteHeaders for Fraction {
///     fn fields(&self) -> &'static [HeaderName] {
///         &FIELDS
///     }
///
///     fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
///         let Some(limit) = report.tightest() else { return };
///         let fraction = format!("{}/{}", limit.remaining(), limit.capacity());
///         if let Ok(value) = HeaderValue::try_from(fraction) {
///             headers.insert(&FIELDS[0], value);
///         }
///     }
/// }
///
/// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new())
///     .headers([HeaderStyle::Draft11, HeaderStyle::custom(Fraction)]);
/// # let _ = layer;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a header style",
    note = "implement `WriteHeaders` for it: `fields` names the fields, `write` inserts them"
)]
pub trait WriteHeaders: Send + Sync + 'static {
    /// Returns the names of all fields that this style may write.
    ///
    /// A layer refuses two styles that write the same field:
    /// [`ConfigError::SharedField`](crate::ConfigError::SharedField).
    fn fields(&self) -> &'static [HeaderName];

    /// Writes the fields of one response.
    ///
    /// It is called for refusals and for admitted requests, local decisions included: see [`HeaderReport::is_local`]
    /// and [`HeaderReport::is_uncounted`]. It is not called if no limit applied, and not for an admitted response with
    /// the `Retry-After` of an inner limiter. The headers are those of the response: a service behind the layer may
    /// have written fields of the same names, and the style must not make them more permissive.
    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap);

    /// Returns this style prepared for the limits of a policy; the default is `None`, no preparation.
    ///
    /// A style may render constant parts here. It is called when a layer is built and when its policy is replaced,
    /// with all limits, those that are [chosen](crate::Policy::choose) for some requests only too.
    fn for_limits(&self, limits: &[LimitInfo]) -> Option<Box<dyn WriteHeaders>> {
        let _ = limits;
        None
    }
}

/// The report of a decision for header styles, without [shadow](crate::Limit::shadow) limits.
#[derive(Clone, Copy, Debug)]
pub struct HeaderReport<'a> {
    report: &'a Report,
    limits: &'a LimitInfos,
}

/// The status of one limit after a decision, for header styles.
#[derive(Clone, Copy, Debug)]
pub struct LimitReport<'a> {
    status: &'a LimitStatus,
    info: &'a LimitInfo,
    report: &'a Report,
}

impl<'a> HeaderReport<'a> {
    pub(super) const fn new(report: &'a Report, limits: &'a LimitInfos) -> Self {
        Self { report, limits }
    }

    /// Returns the decision; `None` when the store failed and nothing was counted.
    #[must_use]
    pub const fn decision(&self) -> Option<&'a Decision> {
        self.report.decision.as_ref()
    }

    /// Returns whether the store was unavailable: this instance decided, or nothing was counted.
    ///
    /// The standard fields report quotas that hold in all instances, and a local decision does not: the built-in drafts
    /// then write nothing.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.report.is_degraded()
    }

    /// Returns whether nothing was counted, because the store was unavailable.
    #[must_use]
    pub fn is_uncounted(&self) -> bool {
        self.is_local()
            && self
                .decision()
                .is_none_or(|decision| decision.enforced().next().is_none())
    }

    /// Returns whether the request was refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.decision()
            .is_some_and(|decision| !decision.is_allowed())
    }

    /// Returns the limits that applied, in the order of the policy.
    pub fn limits(&self) -> impl Iterator<Item = LimitReport<'a>> + use<'a> {
        let Self { report, limits } = *self;
        let statuses = report.decision.as_ref().map_or(&[][..], Decision::statuses);
        let enforced = statuses.iter().filter(|status| !status.is_shadow);
        enforced
            .enumerate()
            .filter_map(move |(position, status)| LimitReport::of(status, report, limits, position))
    }

    /// Returns the limits that a client must respect: for a refusal only those that refuse.
    ///
    /// The others would let the client retry too early.
    pub fn heeded_limits(&self) -> impl Iterator<Item = LimitReport<'a>> + use<'a> {
        let is_refused = self.is_refused();
        self.limits()
            .filter(move |limit| !is_refused || limit.is_refused())
    }

    /// Returns the tightest limit: see [`Decision::tightest`].
    #[must_use]
    pub fn tightest(&self) -> Option<LimitReport<'a>> {
        LimitReport::of(self.decision()?.tightest()?, self.report, self.limits, 0)
    }

    /// Returns the seconds of `Retry-After`, rounded up, at least 1.
    ///
    /// It is `None` if the request was admitted, or would never be.
    #[must_use]
    pub fn retry_after_secs(&self) -> Option<u64> {
        Some(
            ceil_secs(
                self.decision()?
                    .retry_after()?
                    .saturating_add(self.report.jitter),
            )
            .max(1),
        )
    }

    /// Returns whether all limits of the policy applied, each by its own quota and without a partition key.
    pub(super) fn has_all_limits(&self) -> bool {
        self.report.has_own_quotas()
            && self
                .decision()
                .is_some_and(|decision| decision.enforced().count() == self.limits.list().len())
    }
}

impl<'a> LimitReport<'a> {
    /// Makes the report of one limit, which is nearly always at the position of its status.
    fn of(
        status: &'a LimitStatus,
        report: &'a Report,
        limits: &'a LimitInfos,
        position: usize,
    ) -> Option<Self> {
        let info = limits.find(status.name, position)?;
        Some(Self {
            status,
            info,
            report,
        })
    }

    /// Returns the limit as the policy defines it.
    #[must_use]
    pub const fn info(&self) -> &'a LimitInfo {
        self.info
    }

    /// Returns the limit's name.
    #[must_use]
    pub const fn name(&self) -> Name {
        self.info.name()
    }

    /// Returns the status that the store gave.
    #[must_use]
    pub const fn status(&self) -> &'a LimitStatus {
        self.status
    }

    /// Returns the quota that this request was counted by: the limit's own, or another one.
    pub fn quota(&self) -> &'a Quota {
        self.report
            .other_quota(self.info.name())
            .unwrap_or(self.info.quota())
    }

    /// Returns the capacity: the maximum units at once, for a local decision this instance's share.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.status.limit
    }

    /// Returns the units that are left.
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
    /// It is `None` if the limit did not refuse the request, or would never admit it.
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
    /// For a refusal it is [`retry_after`](Self::retry_after). With no units left it is the time until one is
    /// available. Otherwise it is the time of the remaining units at the rate of the quota, and at most the rest of a fixed
    /// window. A client that spreads its units over this time is always admitted, and never slower than the rate. A
    /// sliding window does not know when its next unit is available, and uses the time of one unit at its rate.
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
        self.report.partition_key(self.info.name())
    }

    /// Returns [`capacity`](Self::capacity) as the value of a field.
    pub(super) fn capacity_value(&self) -> Option<HeaderValue> {
        let is_own = self.capacity() == self.info.quota().capacity();
        if is_own {
            self.info.capacity_value()
        } else {
            number_value(self.capacity())
        }
    }

    /// Returns [`reset_after`](Self::reset_after) in seconds, rounded up.
    pub(super) fn reset_after_secs(&self) -> u64 {
        ceil_secs(self.reset_after())
    }
}

/// Returns the time in which an empty bucket gains all units but one.
const fn refill_of_all_but_one(bucket: &Quota) -> Duration {
    // The product is below 2^53, like all numbers of grains.
    Duration::from_micros((bucket.capacity() - 1) * bucket.grain() / bucket.refill())
}

/// Returns the time in which a quota's rate allows these units, rounded up to a microsecond.
fn time_of(units: u64, quota: &Quota) -> Duration {
    let period = quota.period().as_micros();
    // 64 bits are enough except for extreme quotas, and division is several times faster.
    let micros = match u64::try_from(period)
        .ok()
        .and_then(|period| period.checked_mul(units))
    {
        Some(product) => product.div_ceil(quota.units()),
        None => {
            let micros = (period * u128::from(units)).div_ceil(u128::from(quota.units()));
            u64::try_from(micros).unwrap_or(u64::MAX)
        }
    };
    Duration::from_micros(micros)
}
