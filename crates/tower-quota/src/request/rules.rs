use std::sync::Arc;

use tower_quota_core::Name;

use crate::checks::{Checks, Watch};
use crate::layer::Settings;
use crate::metrics::PolicyMetrics;
use crate::policy::{Plan, Policy};

/// The policy and the settings, which the layer compiles and replaces together.
pub(crate) struct Rules {
    pub(crate) policy: Policy,
    pub(crate) settings: Arc<Settings>,
    pub(crate) plan: Plan,
    pub(crate) ends_with_decision: bool,
    pub(crate) watch: Watch,
    pub(crate) metrics: Arc<PolicyMetrics>,
}

impl Rules {
    pub(crate) fn new(
        policy: Policy,
        settings: Arc<Settings>,
        checks: &Arc<Checks>,
        store: usize,
    ) -> Self {
        let plan = Plan::new(policy.clone());
        let watch = Watch::new(Arc::clone(checks), store, plan.limits().count());
        let limits: Vec<Name> = plan.limits().map(|limit| limit.name).collect();
        let metrics = Arc::new(PolicyMetrics::new(limits));
        let has_listener = settings.reads_keys() || settings.traced_admissions.is_some();
        let ends_with_decision = !has_listener
            && !settings.attaches_decision
            && settings.responses.is_silent()
            && plan.ends_with_decision();
        Self {
            policy,
            settings,
            plan,
            ends_with_decision,
            watch,
            metrics,
        }
    }
}
