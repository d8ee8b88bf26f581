//! What a limit makes of a request.

use tower_quota_core::{Algorithm, Charge, ConfigError, Key, Name, Quota};

use super::{Cost, Limit, MissingKey};
use crate::degraded::OnStoreFailure;
use crate::head::RequestHead;

impl Limit {
    /// Whether the limit counts this request.
    pub(crate) fn applies(&self, head: &RequestHead<'_>) -> bool {
        self.conditions.iter().all(|holds| holds(head))
    }

    /// Whether the limit counts every request.
    pub(crate) const fn applies_always(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Returns the cost of every request, if that makes a plain charge of the limit's own quota.
    pub(crate) fn plain_cost(&self) -> Option<u64> {
        let Cost::Constant(units) = self.cost else { return None };
        self.charge_of(&self.quota, &Key::EVERYONE, units).is_plain().then_some(units)
    }

    /// Whether requests may have another quota.
    pub(crate) const fn has_other_quotas(&self) -> bool {
        self.run_time_quota.is_some()
    }

    /// The quota that this request has instead of the limit's own.
    pub(crate) fn other_quota(&self, head: &RequestHead<'_>) -> Option<Quota> {
        self.run_time_quota.as_ref()?(head).filter(|quota| *quota != self.quota)
    }

    /// Whether it is told and not enforced.
    pub(crate) const fn is_shadow(&self) -> bool {
        self.is_shadow
    }

    /// The numbers that what it counts is stored under.
    pub(crate) fn stored_ids(&self) -> impl Iterator<Item = u32> {
        let strikes = self.penalty.is_some().then_some(self.name.strikes_id());
        [self.name.id()].into_iter().chain(strikes)
    }

    /// What it does without its key.
    pub(crate) const fn without_key(&self) -> MissingKey {
        match self.missing {
            MissingKey::Refuse if self.is_shadow => MissingKey::Skip,
            missing => missing,
        }
    }

    /// What it does without the store, where its policy says this.
    pub(crate) fn without_store(&self, policy: OnStoreFailure) -> OnStoreFailure {
        match self.on_store_failure.unwrap_or(policy) {
            OnStoreFailure::Refuse if self.is_shadow => OnStoreFailure::Allow,
            choice => choice,
        }
    }

    /// Returns this limit's charge for a request, by its own quota or the one that replaces it.
    pub(crate) fn charge<'a>(&'a self, quota: &'a Quota, key: &'a Key<'a>, head: &RequestHead<'_>) -> Charge<'a> {
        let cost = match &self.cost {
            Cost::Constant(units) => *units,
            Cost::Computed(of) => of(head),
        };
        self.charge_of(quota, key, cost)
    }

    /// Returns this limit's charge of a cost.
    fn charge_of<'a>(&'a self, quota: &'a Quota, key: &'a Key<'a>, cost: u64) -> Charge<'a> {
        let mut charge = Charge::new(self.name, quota, key).cost(cost);
        let queue = || (quota.algorithm() == Algorithm::LeakyBucket).then_some(Self::DEFAULT_MAX_WAIT);
        if let Some(longest) = self.longest_wait.or_else(queue) {
            charge = charge.patience(longest);
        }
        if self.is_shadow {
            charge = charge.shadow();
        }
        if self.is_at_most {
            charge = charge.at_most();
        }
        if self.terms.is_some() {
            charge = charge.refundable();
        }
        if let Some(penalty) = &self.penalty {
            charge = charge.penalty(penalty);
        }
        if self.counts_refusals { charge.count_refusals() } else { charge }
    }

    /// Whether it may make a request wait.
    pub(crate) fn makes_wait(&self) -> bool {
        let queues = self.quota.algorithm() == Algorithm::LeakyBucket;
        let waits = self.run_time_quota.is_some() || self.longest_wait.map_or(queues, |longest| !longest.is_zero());
        waits && !self.is_shadow
    }

    /// Takes one instance's part of the quota.
    pub(crate) fn divide(&mut self, instances: u32) -> Result<(), ConfigError> {
        self.share = self.quota.try_divided(instances)?;
        Ok(())
    }

    /// What is wrong with this limit by itself.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.name.check_limit()?;
        self.unit.map_or(Ok(()), Name::check_limit)?;
        match self.cost {
            Cost::Constant(cost) if cost > self.quota.capacity() && !self.is_at_most => {
                Err(ConfigError::CostAboveCapacity { limit: self.name, cost, capacity: self.quota.capacity() })
            }
            _ => Ok(()),
        }
    }
}
