//! Reports the decision about a request to header styles.

use core::time::Duration;

use http::Response;
use tower_quota_core::{Algorithm, Decision, LimitStatus, Name, Outcome, Quota};

use super::text::{ceil_secs, epoch_second};
use crate::degraded::Degraded;
use crate::limit::Limit;
use crate::policy::Plan;

#[derive(Debug, Default)]
pub(crate) struct Report {
    /// The decision, absent if the store failed and the request was not counted.
    pub(crate) decision: Option<Decision>,
    /// Whether this process decided the request, in an outage.
    pub(crate) is_local: bool,
    pub(crate) overrides: Vec<(Name, Quota)>,
    pub(crate) oversized: Vec<(Name, u64)>,
    pub(crate) jitter: Duration,
    /// Whether only shadows apply, so that the response gets no fields.
    pub(crate) only_shadows: bool,
}

impl Report {
    pub(crate) fn is_degraded(&self) -> bool {
        self.is_local || self.decision.is_none()
    }

    /// Attaches the decision, if the layer attaches decisions, and the mark `Degraded` to a response's extensions.
    ///
    /// Decisions of refusing inner layers stay.
    pub(crate) fn attach<B>(&mut self, attaches_decision: bool, response: &mut Response<B>) {
        if self.is_degraded() {
            response.extensions_mut().insert(Degraded);
        }
        let Some(decision) = &mut self.decision else {
            return;
        };
        if attaches_decision && response.extensions().get().is_none_or(Decision::is_allowed) {
            let mut attached = decision.clone();
            if !self.is_local {
                core::mem::swap(&mut attached, decision);
            }
            response.extensions_mut().insert(attached);
        }
    }

    pub(crate) fn other_quota(&self, limit: Name) -> Option<&Quota> {
        self.overrides
            .iter()
            .find(|(name, _)| *name == limit)
            .map(|(_, quota)| quota)
    }
}

/// The report of a decision for header styles.
///
/// The report leaves out [shadow](crate::Limit::shadow) and [hidden](crate::Limit::hidden) limits.
#[derive(Clone, Copy, Debug)]
pub struct HeaderReport<'a> {
    pub(super) report: &'a Report,
    pub(super) plan: &'a Plan,
}

impl<'a> HeaderReport<'a> {
    /// Returns the decision, unless the store failed and the request was not counted.
    #[must_use]
    pub const fn decision(&self) -> Option<&'a Decision> {
        self.report.decision.as_ref()
    }

    /// Returns whether the store was unavailable.
    ///
    /// The drafts report shared quotas, and therefore write no fields.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.report.is_degraded()
    }

    pub(super) fn is_uncounted(&self) -> bool {
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
        let Self { report, plan, .. } = *self;
        let decision = report.decision.as_ref();
        let enforced = decision.into_iter().flat_map(Decision::enforced);
        enforced.filter_map(move |status| {
            let limit = plan.limit(status.name)?;
            (!limit.is_hidden).then_some(LimitReport {
                status,
                limit,
                report,
            })
        })
    }

    /// Returns the limits that bind the client, which after a refusal are the refusing limits.
    pub(super) fn binding_limits(&self) -> impl Iterator<Item = LimitReport<'a>> + use<'a> {
        let is_refused = self.is_refused();
        self.limits()
            .filter(move |limit| !is_refused || limit.is_refused())
    }

    /// Returns the tightest limit. See [`Decision::tightest`].
    #[must_use]
    pub fn tightest(&self) -> Option<LimitReport<'a>> {
        self.limits()
            .max_by(|one, other| one.status.cmp_tightness(other.status))
    }

    /// Returns the seconds of `Retry-After` if a retry helps, rounded up and at least 1.
    #[must_use]
    pub fn retry_after_secs(&self) -> Option<u64> {
        let wait = self.decision()?.retry_after()?;
        Some(ceil_secs(wait.saturating_add(self.report.jitter)).max(1))
    }

    /// Returns the policy that the plan prepared, if the request has all limits with their own quotas.
    pub(super) fn prepared_policy(&self) -> Option<&'a str> {
        let texts = &self.plan.texts;
        let limits = self.decision()?.statuses().len();
        let has_all = limits == texts.names.len() && self.report.overrides.is_empty();
        has_all.then_some(texts.policy.as_str())
    }
}

/// The status of a limit after a decision, for header styles.
#[derive(Clone, Copy, Debug)]
pub struct LimitReport<'a> {
    pub(super) status: &'a LimitStatus,
    pub(super) limit: &'a Limit,
    pub(super) report: &'a Report,
}

impl<'a> LimitReport<'a> {
    /// Returns the name of the limit.
    #[must_use]
    pub const fn name(&self) -> Name {
        self.limit.name
    }

    /// Returns the [unit](crate::Limit::unit), if the limit does not count requests.
    #[must_use]
    pub const fn unit(&self) -> Option<Name> {
        self.limit.unit
    }

    /// Returns the status from the store.
    #[must_use]
    pub const fn status(&self) -> &'a LimitStatus {
        self.status
    }

    /// Returns the quota of this request.
    pub fn quota(&self) -> &'a Quota {
        self.report
            .other_quota(self.limit.name)
            .unwrap_or(&self.limit.quota)
    }

    /// Returns the maximum units at once, or the share of this instance for a local decision.
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

    /// Returns the wait with [jitter](crate::RateLimitLayer::retry_jitter), if a retry helps.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.status.outcome {
            Outcome::Refuse(retry) => Some(retry.saturating_add(self.report.jitter)),
            _ => None,
        }
    }

    /// Returns the time until the limit is full, at least [`retry_after`](Self::retry_after).
    #[must_use]
    pub fn reset_after(&self) -> Duration {
        let reset = self.status.reset_after();
        self.retry_after().map_or(reset, |retry| retry.max(reset))
    }

    pub(super) fn reset_at_secs(&self) -> u64 {
        self.report.decision.as_ref().map_or(0, |decision| {
            epoch_second(decision.at(), self.reset_after())
        })
    }

    /// Returns the time over which the client should spread its remaining units, the `t` of draft 11.
    ///
    /// A client at this rate is always admitted. A fixed window bounds the time. Without units, you get the time until
    /// the next unit, and after a refusal [`retry_after`](Self::retry_after). A log may have its next unit earlier.
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
            // The first unit returns once the window that ends last has given back one of its
            // units.
            (0, Algorithm::SlidingWindow) if self.status.debt() == 0 => {
                (reset + time_of(1, quota)).saturating_sub(quota.period())
            }
            (0, _) => reset,
            (remaining, Algorithm::FixedWindow) => reset.min(time_of(remaining, quota)),
            (remaining, _) => time_of(remaining, quota),
        })
    }
}

const fn refill_of_all_but_one(bucket: &Quota) -> Duration {
    // The product is below 2^53.
    Duration::from_micros((bucket.capacity() - 1) * bucket.grain() / bucket.refill())
}

fn time_of(units: u64, quota: &Quota) -> Duration {
    let product = quota.period().as_micros() * u128::from(units);
    // Few products need more than 64 bits, and a longer division takes three times as long.
    let micros = match u64::try_from(product) {
        Ok(product) => product.div_ceil(quota.units()),
        Err(_) => u64::try_from(product.div_ceil(quota.units().into())).unwrap_or(u64::MAX),
    };
    Duration::from_micros(micros)
}
