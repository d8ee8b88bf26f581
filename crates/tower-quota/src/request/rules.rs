//! The rules in force: a policy and its responses.

use http::Request;
use tower_quota_core::Decision;

use crate::checks::{Checks, Watch};
use crate::metrics::PolicyMetrics;
use crate::policy::{Plan, Policy};
use crate::response::{ResponseSettings, Responses};

/// A policy and its responses, compiled together. They are immutable and replaced together.
pub(crate) struct Rules {
    pub(crate) plan: Plan,
    pub(crate) responses: Responses,
    pub(crate) attaches_decision: bool,
    /// True if a request that is admitted at once needs no further work.
    pub(crate) ends_with_decision: bool,
    pub(crate) watch: Watch,
    pub(crate) metrics: PolicyMetrics,
}

impl Rules {
    /// Compiles a policy for a layer with these settings.
    ///
    /// `has_listener` is true if a listener gets decisions; `store` is a number that identifies the store in this
    /// process.
    pub(crate) fn new(
        policy: Policy,
        settings: &ResponseSettings,
        attaches_decision: bool,
        has_listener: bool,
        checks: &Checks,
        store: usize,
    ) -> Self {
        let plan = Plan::new(policy);
        let watch = Watch::new(&plan, checks, store);
        let metrics = PolicyMetrics::new(plan.limits());
        let responses = Responses::new(settings, plan.limits());
        let ends_with_decision =
            !has_listener && !attaches_decision && responses.is_silent() && plan.ends_with_decision();
        Self { plan, responses, attaches_decision, ends_with_decision, watch, metrics }
    }

    /// Attaches the decision to an admitted request, for its handler.
    pub(crate) fn attach_to_request<B>(&self, decision: &Decision, request: &mut Request<B>) {
        if self.attaches_decision {
            request.extensions_mut().insert(decision.clone());
        }
    }
}
