//! The compiled form of a policy: each key once, with its limits.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::{Charge, Decision, Key, Name, Outcome};

use super::Policy;
use super::lists::Lists;
use super::look_up::LookUp;
use crate::degraded::OnStoreFailure;
use crate::key::KeyExtractor;
use crate::limit::Limit;
use crate::settle::RecordedCharge;

/// A policy compiled for requests. It is immutable: another policy is another plan.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) limits: Vec<PlannedLimit>,
    pub(super) keys: Vec<PlannedKey>,
    pub(crate) lists: Lists,
    pub(crate) look_ups: Vec<LookUp>,
    pub(super) instances: u32,
    /// True if any limit settles.
    settles: bool,
    /// True if any limit makes requests wait.
    makes_wait: bool,
}

/// A limit, and the position of its key in the plan.
#[derive(Debug)]
pub(super) struct PlannedLimit {
    pub(super) limit: Limit,
    pub(super) key: usize,
    pub(super) on_store_failure: OnStoreFailure,
}

/// A key that limits count by, read once for each request.
pub(super) struct PlannedKey {
    pub(super) extractor: Arc<dyn KeyExtractor>,
    /// The key that requests without a key share.
    pub(super) shared: Key<'static>,
}

impl Plan {
    pub(crate) fn new(policy: Policy) -> Self {
        let settles = policy.limits.iter().any(|limit| limit.settle_rule.is_some());
        let makes_wait = policy.limits.iter().any(Limit::makes_wait);
        let mut keys: Vec<PlannedKey> = Vec::new();
        let mut limits = Vec::with_capacity(policy.limits.len());
        for limit in policy.limits {
            let scope = limit.extractor.scope();
            let key = keys.iter().position(|known| known.shared.scope() == scope).unwrap_or_else(|| {
                keys.push(PlannedKey { extractor: Arc::clone(&limit.extractor), shared: Key::new(scope, &[]) });
                keys.len() - 1
            });
            let on_store_failure = limit.without_store(policy.on_store_failure);
            limits.push(PlannedLimit { limit, key, on_store_failure });
        }
        let (lists, look_ups, instances) = (policy.lists, policy.look_ups, policy.instances);
        Self { limits, keys, lists, look_ups, instances, settles, makes_wait }
    }

    /// Returns the limits, in the order of the policy.
    pub(crate) fn limits(&self) -> impl Iterator<Item = &Limit> + Clone {
        self.limits.iter().map(|planned| &planned.limit)
    }

    /// Returns the number of keys that the limits count by.
    pub(crate) const fn key_count(&self) -> usize {
        self.keys.len()
    }

    /// Returns the extractor of a key, and the first limit that counts by it.
    pub(crate) fn key(&self, position: usize) -> Option<(&dyn KeyExtractor, Name)> {
        let counting = self.limits.iter().find(|planned| planned.key == position)?;
        Some((&*self.keys.get(position)?.extractor, counting.limit.name))
    }

    /// Returns whether the policy has neither limits nor a block list.
    pub(crate) const fn admits_everything(&self) -> bool {
        self.limits.is_empty() && self.lists.blocked.is_empty()
    }

    /// Returns whether there are no lists and look-ups before the limits.
    #[inline]
    pub(crate) const fn begins_with_limits(&self) -> bool {
        self.look_ups.is_empty() && self.lists.are_empty()
    }

    /// Returns whether a limit is counted in this process while the store is unavailable.
    pub(crate) fn counts_locally(&self) -> bool {
        self.limits.iter().any(|planned| planned.on_store_failure == OnStoreFailure::Local)
    }

    /// Returns whether a request that is admitted at once needs no further work.
    pub(crate) const fn ends_with_decision(&self) -> bool {
        !self.settles && !self.makes_wait
    }

    /// Returns the charges to record: those that settle, or all if the request may have to wait.
    #[inline]
    pub(crate) fn record(&self, charges: &[Charge<'_>]) -> Vec<RecordedCharge> {
        if self.ends_with_decision() { Vec::new() } else { self.record_each(charges) }
    }

    fn record_each(&self, charges: &[Charge<'_>]) -> Vec<RecordedCharge> {
        let may_wait = charges.iter().any(|charge| !charge.is_shadow() && charge.max_wait_micros() > 0);
        let recorded = charges.iter().filter_map(|charge| {
            let rule = self.limit(charge.name()).and_then(|limit| limit.settle_rule.clone());
            (may_wait || rule.is_some()).then(|| RecordedCharge::new(charge, rule))
        });
        recorded.collect()
    }

    /// Returns the maximum random delay that limits add to the wait.
    pub(crate) fn wait_jitter(&self, decision: &Decision) -> Duration {
        let waiting = decision.enforced().filter(|status| matches!(status.outcome, Outcome::Wait(_)));
        waiting.filter_map(|status| self.limit(status.name)).map(|limit| limit.jitter).max().unwrap_or_default()
    }

    fn limit(&self, name: Name) -> Option<&Limit> {
        self.limits().find(|limit| limit.name == name)
    }
}

impl fmt::Debug for PlannedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlannedKey({})", self.shared.scope())
    }
}
