//! The compiled form of a policy.

use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::Arc;

use tower_quota_core::{
    Charge, ChargeMode, Decision, Key, Name, Operation, Outcome, OwnedCharge, Quota,
};

use super::lists::Lists;
use super::look_up::LookUp;
use super::planned::{PlannedChoice, PlannedKey, PlannedLimit, SimpleCharge};
use super::{Overrides, Policy};
use crate::degraded::OnStoreFailure;
use crate::key::is_everyone;
use crate::limit::{Limit, Over};
use crate::request::Waiter;
use crate::response::PreparedTexts;
use crate::settle::{RecordedCharge, release};

pub(crate) struct Plan {
    limits: Vec<PlannedLimit>,
    listed: usize,
    pub(super) choices: Vec<PlannedChoice>,
    by_id: ById,
    pub(crate) texts: PreparedTexts,
    pub(super) keys: Vec<PlannedKey>,
    pub(crate) lists: Lists,
    pub(crate) look_ups: Vec<LookUp>,
    pub(super) overrides: Option<Arc<Overrides>>,
    pub(crate) version: Option<u64>,
    /// The refusals in a row before the layer closes the client's connection.
    pub(crate) close_after: Option<NonZeroU32>,
    pub(crate) instances: u32,
    pub(crate) begins_with_limits: bool,
    settles: bool,
    pub(crate) makes_wait: bool,
    /// Whether several limits share the places of waiting requests.
    shares_places: bool,
    flags: bool,
    delays: bool,
}

impl Plan {
    pub(crate) fn new(policy: Policy) -> Self {
        let listed = policy.limits.len();
        let mut limits = policy.limits;
        // A closure may choose a quota that makes requests wait.
        let may_wait = |limit: &&Limit| policy.overrides.is_some() || limit.makes_wait();
        let mut waiting_limits = limits.iter().filter(may_wait).count();
        let mut choices = Vec::with_capacity(policy.choices.len());
        for choice in policy.choices {
            let enforced = choice.limits.iter().filter(|limit| !limit.is_shadow());
            waiting_limits += enforced.count();
            let first = limits.len();
            limits.extend(choice.limits);
            choices.push(PlannedChoice {
                limits: first..limits.len(),
                choose: choice.choose,
            });
        }
        let settles = limits.iter().any(Limit::settles);
        let flags = limits.iter().any(Limit::flags);
        let delays = limits.iter().any(Limit::delays);
        let by_id = ById::new(limits.iter().map(|limit| limit.name));
        let texts = PreparedTexts::new(&limits);
        let mut keys: Vec<PlannedKey> = Vec::new();
        let mut positions: HashMap<Name, usize> = HashMap::new();
        let planned = limits.into_iter().map(|limit| {
            let scope = limit.extractor.scope();
            let key = *positions.entry(scope).or_insert_with(|| {
                let shared = Key::new(scope, &[]);
                keys.push(PlannedKey {
                    extractor: Arc::clone(&limit.extractor),
                    is_everyone: is_everyone(&*limit.extractor),
                    shared,
                });
                keys.len() - 1
            });
            let on_store_failure = limit.without_store(policy.on_store_failure);
            let share = limit.quota.try_divided(policy.instances).ok();
            let simple = limit.simple_cost().map(|cost| SimpleCharge {
                name: limit.name,
                quota: limit.quota,
                cost,
            });
            PlannedLimit {
                key,
                simple,
                limit,
                on_store_failure,
                share,
            }
        });
        let limits = planned.collect();
        let (lists, look_ups, instances) = (policy.lists, policy.look_ups, policy.instances);
        let begins_with_limits = look_ups.is_empty() && lists.are_empty();
        Self {
            limits,
            listed,
            choices,
            by_id,
            texts,
            keys,
            lists,
            look_ups,
            overrides: policy.overrides,
            instances,
            version: policy.version,
            close_after: policy.close_after,
            begins_with_limits,
            settles,
            makes_wait: waiting_limits > 0,
            shares_places: waiting_limits > 1,
            flags,
            delays,
        }
    }

    pub(crate) fn limits(&self) -> impl Iterator<Item = &Limit> + Clone {
        self.limits.iter().map(|planned| &planned.limit)
    }

    #[inline]
    pub(super) fn listed(&self) -> &[PlannedLimit] {
        self.limits.get(..self.listed).unwrap_or_default()
    }

    pub(super) fn chosen_of(&self, choice: &PlannedChoice) -> &[PlannedLimit] {
        self.limits.get(choice.limits.clone()).unwrap_or_default()
    }

    pub(crate) fn quota_by_key(&self, limit: &Limit, key: &Key<'_>) -> Quota {
        let quota = limit.quota_by_key(key);
        let overridden = self.overrides.as_ref();
        overridden
            .and_then(|overrides| overrides(limit.name, key, Some(&quota)))
            .map_or(quota, |quota| limit.for_its_waits(quota))
    }

    pub(crate) const fn ends_with_decision(&self) -> bool {
        !self.settles && !self.makes_wait && !self.flags && !self.delays
    }

    /// Returns whether any of these charges can refuse, delay or flag a request.
    pub(crate) fn has_effect(&self, charges: &[OwnedCharge]) -> bool {
        charges.iter().any(|owned| {
            let charge = owned.as_charge();
            !charge.is_shadow() || self.limit(charge.name()).is_some_and(Limit::flags)
        })
    }

    pub(crate) fn flagged(&self, decision: &Decision) -> Vec<Name> {
        if !self.flags {
            return Vec::new();
        }
        let refusing = decision.would_refuse().map(|status| status.name);
        refusing
            .filter(|name| self.limit(*name).is_some_and(Limit::flags))
            .collect()
    }

    /// Turns the debts of limits that delay requests into waits, for dry runs only in their statuses.
    pub(crate) fn delay(&self, decision: &mut Decision) {
        if !self.delays || !decision.is_allowed() {
            return;
        }
        let statuses = decision.statuses().iter().map(|status| {
            let mut status = *status;
            let over = self.limit(status.name).map(|limit| limit.over);
            if let (Some(Over::Delay { step, most }), debt @ 1..) = (over, status.debt()) {
                let times = u32::try_from(debt).unwrap_or(u32::MAX);
                status.outcome = Outcome::Wait(step.saturating_mul(times).min(most));
            }
            status
        });
        *decision = Decision::from_statuses(Operation::Check, decision.at(), statuses);
    }

    /// Returns the charges that settle, or all charges if the request may wait.
    #[inline]
    pub(crate) fn record(&self, charges: &[Charge<'_>]) -> Vec<RecordedCharge> {
        if self.ends_with_decision() {
            Vec::new()
        } else {
            self.record_each(charges)
        }
    }

    pub(crate) fn record_in_flight(&self, charges: &[Charge<'_>]) -> Vec<RecordedCharge> {
        let fails_closed = |charge: &Charge<'_>| {
            let planned = self.planned(charge.name().id());
            let choice = planned.and_then(|planned| planned.on_store_failure);
            choice == Some(OnStoreFailure::Refuse) && !charge.is_shadow()
        };
        let recorded = self.record(charges);
        if recorded.is_empty() && charges.iter().any(fails_closed) {
            let all = charges.iter();
            return all
                .map(|charge| RecordedCharge::new(charge, None))
                .collect();
        }
        recorded
    }

    fn record_each(&self, charges: &[Charge<'_>]) -> Vec<RecordedCharge> {
        let may_wait = charges.iter().any(|charge| {
            let is_delayed = charge.mode() == ChargeMode::Forced;
            !charge.is_shadow() && (charge.max_wait_micros() > 0 || is_delayed)
        });
        let mut recorded = Vec::new();
        for charge in charges {
            let limit = self.limit(charge.name());
            let rule = if charge.is_hold() {
                Some(release())
            } else {
                limit.and_then(|limit| limit.settle_rule.clone())
            };
            if may_wait || rule.is_some() {
                let longest = limit.and_then(|limit| limit.longest_hold.as_ref());
                recorded.push(RecordedCharge::new(charge, rule).with_longest_hold(longest));
            }
        }
        recorded
    }

    pub(crate) fn waiter<'a>(&self, limit: Name, key: &'a Key<'a>) -> Waiter<'a> {
        let limit = self.shares_places.then_some(limit);
        Waiter { limit, key }
    }

    pub(crate) fn wait_jitter(&self, decision: &Decision) -> Duration {
        let waiting = decision
            .enforced()
            .filter(|status| matches!(status.outcome, Outcome::Wait(_)));
        waiting
            .filter_map(|status| self.limit(status.name))
            .map(|limit| limit.jitter)
            .max()
            .unwrap_or_default()
    }

    pub(crate) fn limit_named(&self, name: &str) -> Option<&Limit> {
        let limit = &self.planned(Name::id_of(name))?.limit;
        (limit.name.as_str() == name).then_some(limit)
    }

    pub(crate) fn limit(&self, name: Name) -> Option<&Limit> {
        Some(&self.planned(name.id())?.limit)
    }

    pub(super) fn planned(&self, id: u32) -> Option<&PlannedLimit> {
        self.limits.get(self.by_id.find(id)?)
    }

    pub(crate) fn position(&self, limit: Name) -> Option<usize> {
        self.by_id.find(limit.id())
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").finish_non_exhaustive()
    }
}

/// The positions of a policy's limits by the numbers of their names.
///
/// Sorted numbers instead of a hash map, because a few limits fit in one cache line.
pub(crate) struct ById(Box<[(u32, u32)]>);

impl ById {
    pub(crate) fn new(names: impl Iterator<Item = Name>) -> Self {
        let mut positions: Box<[(u32, u32)]> = names
            .zip(0..)
            .map(|(name, position)| (name.id(), position))
            .collect();
        positions.sort_unstable();
        Self(positions)
    }

    pub(crate) fn find(&self, id: u32) -> Option<usize> {
        let found = self.0.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        usize::try_from(self.0.get(found)?.1).ok()
    }
}
