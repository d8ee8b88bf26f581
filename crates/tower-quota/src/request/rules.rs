use std::sync::Arc;

use http::Request;
use tower_quota_core::{Decision, Name};

use crate::checks::{Checks, Watch};
use crate::layer::Settings;
use crate::metrics::PolicyMetrics;
use crate::policy::{Plan, Policy};
use crate::response::Responses;

/// Policy, settings and responses, compiled and replaced together.
pub(crate) struct Rules {
    /// The original policy, for other settings.
    pub(crate) policy: Policy,
    pub(crate) settings: Arc<Settings>,
    pub(crate) plan: Plan,
    pub(crate) responses: Responses,
    pub(crate) ends_with_decision: bool,
    pub(crate) watch: Watch,
    pub(crate) metrics: Arc<PolicyMetrics>,
}

impl Rules {
    /// `store` identifies the store in this process.
    pub(crate) fn new(
        policy: Policy,
        settings: Arc<Settings>,
        checks: &Arc<Checks>,
        store: usize,
    ) -> Self {
        let plan = Plan::new(policy.clone());
        let watch = Watch::new(Arc::clone(checks), store);
        let limits: Vec<Name> = plan.limits().map(|limit| limit.name).collect();
        let metrics = Arc::new(PolicyMetrics::new(limits));
        let responses = Responses::new(&settings.responses, &plan);
        let has_listener = settings.reads_keys() || settings.traced_admissions.is_some();
        let ends_with_decision = !has_listener
            && !settings.attaches_decision
            && responses.is_silent()
            && plan.ends_with_decision();
        Self {
            policy,
            settings,
            plan,
            responses,
            ends_with_decision,
            watch,
            metrics,
        }
    }

    pub(crate) fn attach_to_request<B>(&self, decision: &Decision, request: &mut Request<B>) {
        if self.settings.attaches_decision {
            request.extensions_mut().insert(decision.clone());
        }
    }
}
