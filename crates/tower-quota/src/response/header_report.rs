use http::header::HeaderValue;
use tower_quota_core::Decision;

use super::limit_report::LimitReport;
use super::report::Report;
use super::text::{ceil_secs, text_value};
use crate::policy::Plan;

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
            (!limit.is_hidden()).then_some(LimitReport {
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

    pub(super) fn full_policy(&self) -> Option<HeaderValue> {
        let texts = &self.plan.texts;
        let limits = self.decision()?.statuses().len();
        if limits != texts.problems.len() || !self.report.overrides.is_empty() {
            return None;
        }
        // Copy the text. All cores would write the reference count of a shared text.
        text_value(&texts.policy)
    }
}
