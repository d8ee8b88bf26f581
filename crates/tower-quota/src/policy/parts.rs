//! The parts of a policy as data, for programs that print policies.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::{Name, Penalty, Quota};

use super::Policy;
use crate::degraded::OnStoreFailure;
use crate::described::Described;
use crate::limit::MissingKey;
use crate::settle::Settle;
use crate::when::Condition;

/// The parts of a policy as data: what [`Policy::parts`] returns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PolicyParts {
    /// The listed limits, in order.
    pub limits: Vec<LimitParts>,
    /// The descriptions of the lists of [`Policy::choose`], see [`Policy::describe_choice`].
    pub choices: Vec<Option<Described>>,
    /// The conditions of requests that are allowed.
    pub allowed: Vec<Option<Described>>,
    /// The conditions of requests that are blocked.
    pub blocked: Vec<Option<Described>>,
    /// The conditions of requests that are skipped.
    pub skipped: Vec<Option<Described>>,
    /// The maximum number of instances.
    pub instances: u32,
    /// The choice of limits without their own while the store is unavailable.
    pub on_store_failure: OnStoreFailure,
    /// The number of look-ups.
    pub look_ups: usize,
    /// True if another policy decides some requests.
    pub is_split: bool,
}

/// The parts of a limit as data. A description that is `None` is that of a part that only code can say.
#[derive(Clone)]
#[non_exhaustive]
pub struct LimitParts {
    /// The name.
    pub name: Name,
    /// The quota.
    pub quota: Quota,
    /// The counted key.
    pub key: Option<Described>,
    /// The cost of a request.
    pub cost: Option<Described>,
    /// The unit, if not requests.
    pub unit: Option<Name>,
    /// The conditions, all of which must hold.
    pub conditions: Vec<Option<Described>>,
    /// True if a closure chooses the quota of each request.
    pub has_run_time_quota: bool,
    /// The choice for requests without a key, if it is set.
    pub missing: Option<MissingKey>,
    /// The longest wait, if it is set.
    pub max_wait: Option<Duration>,
    /// The longest random time that is added to a wait.
    pub wait_jitter: Duration,
    /// True if refused requests are charged.
    pub counts_refusals: bool,
    /// True if no request is decided from units taken in advance.
    pub is_exact: bool,
    /// True for a dry run.
    pub is_shadow: bool,
    /// True for partial grants.
    pub is_at_most: bool,
    /// The penalty.
    pub penalty: Option<Penalty>,
    /// The settle rule, if there is one, with the choice for requests without a response.
    pub settle: Option<(Option<Described>, Settle)>,
    /// The choice while the store is unavailable, if it is set.
    pub on_store_failure: Option<OnStoreFailure>,
}

impl Policy {
    /// Describes the last list of [`choose`](Self::choose), for programs that print policies.
    pub fn describe_choice(mut self, description: Described) -> Self {
        if let Some(choice) = self.choices.last_mut() {
            choice.description = Some(description);
        }
        self
    }

    /// Returns the parts of this policy as data, for programs that print it.
    ///
    /// Closures are parts of which only code knows what they do, unless they are
    /// [described](crate::when::described).
    #[must_use]
    pub fn parts(&self) -> PolicyParts {
        let list = |conditions: &[Arc<dyn Condition>]| {
            conditions
                .iter()
                .map(|condition| condition.describe())
                .collect()
        };
        PolicyParts {
            limits: self.limits.iter().map(crate::limit::Limit::parts).collect(),
            choices: self
                .choices
                .iter()
                .map(|choice| choice.description.clone())
                .collect(),
            allowed: list(&self.lists.allowed),
            blocked: list(&self.lists.blocked),
            skipped: list(&self.lists.skipped),
            instances: self.instances,
            on_store_failure: self.on_store_failure.unwrap_or_default(),
            look_ups: self.look_ups.len(),
            is_split: self.split.is_some(),
        }
    }
}

impl fmt::Debug for LimitParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitParts")
            .field("name", &self.name)
            .field("quota", &self.quota)
            .finish_non_exhaustive()
    }
}
