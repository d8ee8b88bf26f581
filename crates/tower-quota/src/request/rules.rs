//! The rules in force: a policy and the responses it makes.

use http::Request;
use tower_quota_core::Decision;

use crate::checks::{Checks, Watch};
use crate::policy::{Plan, Policy};
use crate::response::{ResponseSettings, Responses};

/// A policy and the responses it makes, compiled together. They never change: other rules take their place as a whole.
pub(crate) struct Rules {
    pub(crate) plan: Plan,
    pub(crate) responses: Responses,
    pub(crate) attaches_decision: bool,
    /// Says whether nothing is left to do for a request that is admitted at once.
    pub(crate) ends_with_decision: bool,
    pub(crate) watch: Watch,
}

impl Rules {
    /// Compiles a policy, for a layer that responds by these settings.
    ///
    /// `is_heard` says whether a listener hears of decisions, `store` is a number that stands for the store in this process.
    pub(crate) fn new(
        policy: Policy,
        settings: &ResponseSettings,
        attaches_decision: bool,
        is_heard: bool,
        checks: &Checks,
        store: usize,
    ) -> Self {
        let plan = Plan::new(policy);
        let watch = Watch::new(&plan, checks, store);
        let responses = Responses::new(settings, plan.limits());
        let ends_with_decision = !is_heard && !attaches_decision && responses.is_silent() && plan.ends_with_decision();
        Self { plan, responses, attaches_decision, ends_with_decision, watch }
    }

    /// Leaves the decision in the extensions of an admitted request, for its handler.
    pub(crate) fn attach_to_request<B>(&self, decision: &Decision, request: &mut Request<B>) {
        if self.attaches_decision {
            request.extensions_mut().insert(decision.clone());
        }
    }
}
