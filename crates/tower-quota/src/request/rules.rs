use std::sync::Arc;

use http::Request;
use tower_quota_core::{Decision, Name};

use crate::checks::{Checks, Watch};
use crate::head::RequestHead;
use crate::layer::Settings;
use crate::metrics::PolicyMetrics;
use crate::policy::{Plan, Policy};
use crate::response::Responses;
use crate::when::Condition;

/// Policy, settings and responses, compiled and replaced together.
pub(crate) struct Rules {
    /// The original policy, for other settings.
    pub(crate) policy: Policy,
    pub(crate) settings: Arc<Settings>,
    pub(crate) plan: Plan,
    pub(crate) responses: Responses,
    pub(crate) ends_with_decision: bool,
    pub(crate) watch: Watch,
    split: Option<(Arc<dyn Condition>, Arc<Rules>)>,
    /// Shared with the split.
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
        let mut planned = policy.clone();
        let mut split = planned.split.take().map(|split| {
            let rules = Self::new(split.policy, Arc::clone(&settings), checks, store);
            (split.condition, rules)
        });
        let plan = Plan::new(planned);
        let watch = Watch::new(Arc::clone(checks), store);
        let mut limits: Vec<Name> = plan.limits().map(|limit| limit.name).collect();
        if let Some((_, rules)) = &split {
            limits.extend(rules.plan.limits().map(|limit| limit.name));
        }
        let metrics = Arc::new(PolicyMetrics::new(limits));
        if let Some((_, rules)) = &mut split {
            rules.metrics = Arc::clone(&metrics);
        }
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
            split: split.map(|(condition, rules)| (condition, Arc::new(rules))),
        }
    }

    #[inline]
    pub(crate) fn of_request<'a, B>(self: &'a Arc<Self>, request: &Request<B>) -> &'a Arc<Self> {
        if self.split.is_none() {
            self
        } else {
            self.of_head(&RequestHead::of(request))
        }
    }

    pub(crate) fn of_head<'a>(self: &'a Arc<Self>, head: &RequestHead<'_>) -> &'a Arc<Self> {
        match &self.split {
            Some((condition, rules)) if condition(head) => rules,
            _ => self,
        }
    }

    /// Returns the plan of the first policy, then the plan of the split.
    pub(crate) fn plans(&self) -> impl Iterator<Item = &Plan> {
        let split = self.split.iter().map(|(_, rules)| &rules.plan);
        core::iter::once(&self.plan).chain(split)
    }

    pub(crate) fn attach_to_request<B>(&self, decision: &Decision, request: &mut Request<B>) {
        if self.settings.attaches_decision {
            request.extensions_mut().insert(decision.clone());
        }
    }
}
