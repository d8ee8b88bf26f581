use core::time::Duration;

use tower_quota_core::{Algorithm, Charge, ChargeMode, ConfigError, Key, Name, Quota};

use super::{Cost, DegradedQuota, Limit, MissingKey, Over};
use crate::degraded::OnStoreFailure;
use crate::head::RequestHead;
use crate::key::lacks_address;

impl Limit {
    /// Returns the constant cost of a limit without conditions, closures or options.
    pub(crate) fn simple_cost(&self) -> Option<u64> {
        let has_closures = !self.conditions.is_empty() || self.run_time_quota.is_some();
        match self.cost {
            Cost::Constant(units) if !has_closures && !self.has_options() => Some(units),
            _ => None,
        }
    }

    fn has_options(&self) -> bool {
        self.quota.algorithm() == Algorithm::LeakyBucket
            || self.longest_wait.is_some()
            || self.settle_rule.is_some()
            || self.penalty.is_some()
            || self.over != Over::Refuse
            || self.counts_refusals
            || self.is_exact
            || self.is_shadow
            || self.is_at_most
    }

    #[inline]
    pub(crate) fn applies(&self, head: &RequestHead<'_>) -> bool {
        // If a condition is unsure, the limit applies.
        self.conditions.is_empty()
            || self
                .conditions
                .iter()
                .all(|holds| holds(&head.in_doubt(true)))
    }

    /// Returns the quota from closures, if different from the limit's own.
    #[inline]
    pub(crate) fn other_quota(
        &self,
        chosen: Option<Quota>,
        head: &RequestHead<'_>,
    ) -> Option<Quota> {
        let quota = match chosen {
            Some(quota) => quota,
            None => self.run_time_quota.as_ref()?(head)?,
        };
        let quota = self.for_its_waits(quota);
        (quota != self.quota).then_some(quota)
    }

    pub(crate) fn quota_by_key(&self, key: &Key<'_>) -> Quota {
        let chosen = self
            .quota_of_key
            .as_ref()
            .and_then(|quota_of| quota_of(key));
        chosen.map_or(self.quota, |quota| self.for_its_waits(quota))
    }

    pub(crate) fn for_its_waits(&self, quota: Quota) -> Quota {
        quota.for_waits_of(self.longest_wait.unwrap_or(Self::DEFAULT_MAX_WAIT))
    }

    #[inline]
    pub(crate) fn units(&self, head: &RequestHead<'_>) -> u64 {
        match &self.cost {
            Cost::Constant(units) => *units,
            Cost::Computed(of) => of(head),
        }
    }

    #[inline(never)]
    pub(crate) fn charge<'a>(
        &'a self,
        quota: &'a Quota,
        key: &'a Key<'a>,
        units: u64,
    ) -> Charge<'a> {
        let mut charge = Charge::new(self.name, quota, key).cost(units);
        let queue =
            || (quota.algorithm() == Algorithm::LeakyBucket).then_some(Self::DEFAULT_MAX_WAIT);
        if let Some(longest) = self.longest_wait.or_else(queue) {
            charge = charge.max_wait(longest);
        }
        if self.is_shadow() {
            charge = charge.shadow();
        }
        if let Over::Delay { step, most } = self.over {
            // A larger debt would not delay longer, but would outlast the client's requests.
            let units = most.as_micros().div_ceil(step.as_micros().max(1));
            let longest = match quota.refill() {
                0 => units.saturating_mul(quota.period().as_micros()) / u128::from(quota.units()),
                refill => {
                    let debt = units.saturating_mul(u128::from(quota.grain()));
                    debt.div_ceil(u128::from(refill))
                }
            };
            let longest = u64::try_from(longest).unwrap_or(u64::MAX);
            charge = charge
                // The debt measures how far the client is over the quota, and becomes the wait.
                .in_mode(ChargeMode::Forced)
                .max_wait(Duration::from_micros(longest))
                .refundable();
        }
        if self.is_at_most {
            charge = charge.at_most();
        }
        if self.is_exact {
            charge = charge.exact();
        }
        if self.settle_rule.is_some() {
            charge = charge.refundable();
        }
        if let Some(penalty) = &self.penalty {
            charge = charge.penalty(penalty);
        }
        if self.counts_refusals {
            charge.count_refusals()
        } else {
            charge
        }
    }

    /// Returns whether the store counts without refusing, for a dry run or a flag.
    pub(crate) const fn is_shadow(&self) -> bool {
        self.is_shadow || matches!(self.over, Over::Flag)
    }

    /// Returns whether the limit changes nothing for requests.
    pub(crate) const fn is_dry_run(&self) -> bool {
        self.is_shadow
    }

    pub(crate) const fn flags(&self) -> bool {
        matches!(self.over, Over::Flag) && !self.is_shadow
    }

    /// Returns whether the limit delays requests, or would delay them without the dry run.
    pub(crate) const fn delays(&self) -> bool {
        matches!(self.over, Over::Delay { .. })
    }

    pub(crate) fn stored_ids(&self) -> impl Iterator<Item = u32> {
        let strikes = self.penalty.is_some().then_some(self.name.strikes_id());
        let ids = [self.name.id(), self.name.holds_id()];
        ids.into_iter().chain(strikes)
    }

    /// Returns the choice for a request without a key, or `None` if the server did not attach the address of the peer.
    ///
    /// A shadow never refuses.
    pub(crate) fn without_key(&self, head: &RequestHead<'_>) -> Option<MissingKey> {
        match self.missing {
            Some(MissingKey::ShareOneCounter) => self.missing,
            _ if self.is_shadow() => Some(MissingKey::Skip),
            Some(_) => self.missing,
            None if lacks_address(&*self.extractor, head) => None,
            None if self.extractor.has_credentials() => Some(MissingKey::Unauthenticated),
            None => Some(MissingKey::Refuse),
        }
    }

    pub(crate) fn without_store(&self, policy: Option<OnStoreFailure>) -> Option<OnStoreFailure> {
        if self.degraded.is_some() {
            return Some(OnStoreFailure::Local);
        }
        match self.on_store_failure.or(policy) {
            Some(OnStoreFailure::Refuse) if self.is_dry_run() => Some(OnStoreFailure::Allow),
            choice => choice,
        }
    }

    pub(crate) fn has_run_time_quota(&self) -> bool {
        self.run_time_quota.is_some()
    }

    pub(crate) fn settles(&self) -> bool {
        let is_degraded_to_hold = self.degraded.as_ref().is_some_and(DegradedQuota::is_hold);
        self.settle_rule.is_some() || self.is_hold() || is_degraded_to_hold
    }

    pub(crate) fn is_hold(&self) -> bool {
        self.quota.algorithm() == Algorithm::Concurrent
    }

    pub(crate) fn makes_wait(&self) -> bool {
        let degraded = self.degraded.as_ref().map(|degraded| degraded.quota);
        let mut quotas = [Some(self.quota), degraded].into_iter().flatten();
        let queues = quotas.any(|quota| quota.algorithm() == Algorithm::LeakyBucket);
        let waits = self.run_time_quota.is_some()
            || self
                .longest_wait
                .map_or(queues, |longest| !longest.is_zero());
        (waits || self.delays()) && !self.is_shadow()
    }

    pub(crate) fn check_with(&self, quota: Quota, instances: u32) -> Result<(), ConfigError> {
        let mut other = self.clone();
        other.quota = quota;
        other.degraded = None;
        if other.is_hold() != self.is_hold() {
            return Err(ConfigError::OtherCounting {
                limit: self.name,
                algorithm: quota.algorithm(),
            });
        }
        other.check()?;
        quota.try_divided(instances).map(drop)
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.name.check_limit()?;
        if let Some(degraded) = &self.degraded {
            let mut other = self.clone();
            other.quota = self.for_its_waits(degraded.quota);
            other.degraded = None;
            if !degraded.is_hold() {
                other.longest_hold = None;
            }
            other.check()?;
        }
        self.unit.map_or(Ok(()), Name::check_limit)?;
        // A request may choose a quota that is a bucket.
        let waits = self.run_time_quota.is_some() || self.quota.algorithm().is_bucket();
        if !waits && self.longest_wait.is_some_and(|longest| !longest.is_zero()) {
            return Err(ConfigError::WaitOnWindow {
                limit: self.name,
                algorithm: self.quota.algorithm(),
            });
        }
        if matches!(
            self.over,
            Over::Delay {
                step: Duration::ZERO,
                ..
            }
        ) {
            return Err(ConfigError::ZeroStep(self.name));
        }
        if self.is_hold() {
            if self.settle_rule.is_some() {
                return Err(ConfigError::SettledHold(self.name));
            }
            if self.delays() {
                return Err(ConfigError::DelayedHold(self.name));
            }
        } else if self.longest_hold.is_some() {
            return Err(ConfigError::NotConcurrent(self.quota.algorithm()));
        }
        match self.cost {
            Cost::Constant(cost) if cost > self.quota.capacity() && !self.is_at_most => {
                Err(ConfigError::CostAboveCapacity {
                    limit: self.name,
                    cost,
                    capacity: self.quota.capacity(),
                })
            }
            _ => Ok(()),
        }
    }
}
