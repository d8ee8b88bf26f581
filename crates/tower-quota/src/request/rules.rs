use std::sync::Arc;
use std::time::Instant;

use super::observed::Observed;
use crate::checks::Watch;
use crate::layer::Settings;
#[cfg(feature = "metrics")]
use crate::metrics::PolicyMetrics;
use crate::observe::{Observers, now};
use crate::policy::{Plan, Policy};

/// The policy and the settings, which the layer compiles and replaces together.
pub(crate) struct Rules {
    pub(crate) policy: Policy,
    pub(crate) settings: Arc<Settings>,
    pub(crate) plan: Plan,
    /// Whether an admitted request needs nothing but its fields.
    pub(crate) ends_with_decision: bool,
    pub(crate) writes_fields: bool,
    pub(crate) watch: Arc<Watch>,
    /// When the rules were made.
    pub(crate) since: Instant,
    pub(crate) observers: Observers,
    #[cfg(feature = "metrics")]
    pub(crate) metrics: Arc<PolicyMetrics>,
}

impl Rules {
    pub(crate) fn new(policy: Policy, settings: Arc<Settings>, observed: &Observed) -> Self {
        let plan = Plan::new(policy.clone());
        let watch = Arc::new(observed.watch(plan.limits().count()));
        let mut observers = observed.observers(&settings, &plan);
        observers.push(watch.clone());
        #[cfg(feature = "metrics")]
        let metrics = Arc::new(PolicyMetrics::new(plan.limits().map(|limit| limit.name)));
        #[cfg(feature = "metrics")]
        observers.push(metrics.clone());
        let observers = Observers::new(observers);
        Self {
            ends_with_decision: plan.ends_with_decision()
                && !settings.attaches_decision
                && !observers.read_keys,
            writes_fields: !settings.responses.is_silent(),
            policy,
            settings,
            plan,
            watch,
            since: now(),
            observers,
            #[cfg(feature = "metrics")]
            metrics,
        }
    }
}
