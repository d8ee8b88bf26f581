//! Limits that never decide, since a stricter one counts the same requests: for all clients, and for those of a tier.

use core::time::Duration;
use std::collections::HashSet;

use tower_quota::Quota;

use super::stricter::is_stricter;
use super::tiers::MAX_EXTENDED;
use super::{Checker, PlacedLimit, all_limits};
use crate::document::{LimitRule, MissingRule, StoreFailureRule, TierRule};
use crate::problem::Place;
use crate::text::{CostText, QuotaText};

/// A limit, and the quota by which it counts a client.
type Counting<'a> = (PlacedLimit<'a>, &'a Quota);

impl<'d> Checker<'d> {
    pub(super) fn useless(&mut self) {
        let document = self.document;
        // A quota that a tier or a single key replaces is not the only one.
        let replaced = core::mem::take(&mut self.replaced);
        let positions = self.limits.clone();
        let fixed = |limit: &PlacedLimit<'_>| {
            positions
                .get_index_of(limit.rule.name.as_str())
                .is_some_and(|position| !replaced[position])
        };
        let global: Vec<PlacedLimit<'d>> = all_limits(document)
            .filter(|limit| limit.route.is_none())
            .filter(fixed)
            .collect();
        for limit in all_limits(document).filter(fixed) {
            for other in global.iter().copied().chain(limit.siblings().filter(fixed)) {
                if !self.budget.take() {
                    return;
                }
                let (one, loose) = (
                    (other, other.rule.quota.quota()),
                    (limit, limit.rule.quota.quota()),
                );
                if core::ptr::eq(other.rule, limit.rule) || !self.decides_for(one, loose) {
                    continue;
                }
                let text = format!(
                    "{:?} never decides, since {:?} with {} is stricter: lower {:?}, or remove it",
                    limit.rule.name.as_str(),
                    other.rule.name.as_str(),
                    other.rule.quota,
                    limit.rule.name.as_str()
                );
                self.warning(limit.place().field("quota"), text);
                break;
            }
        }
    }

    /// Warns of the quotas of tiers that a limit with a stricter one in the same tier makes useless.
    ///
    /// A limit that single keys have other quotas of is not compared: it may be looser for a client of the tier.
    pub(super) fn useless_for_tiers(&mut self) {
        let document = self.document;
        if document.tiers.is_empty() {
            return;
        }
        let overrides = document
            .overrides
            .values()
            .flat_map(|single| &single.limits);
        let overridden: HashSet<&str> = overrides.map(|(name, _)| name.as_str()).collect();
        let is_fixed = |limit: &PlacedLimit<'_>| !overridden.contains(limit.rule.name.as_str());
        let global: Vec<PlacedLimit<'d>> = all_limits(document)
            .filter(|limit| limit.route.is_none())
            .filter(is_fixed)
            .collect();
        for (tier_name, tier) in &document.tiers {
            for (name, grant) in &tier.limits {
                let name = name.as_str();
                let (Some(limit), Some(quota)) = (self.limits.get(name).copied(), grant.quota())
                else {
                    continue;
                };
                for other in global
                    .iter()
                    .copied()
                    .chain(limit.siblings().filter(is_fixed))
                {
                    if !self.budget.take() {
                        return;
                    }
                    let Some(strict) = self.quota_in(tier, other) else {
                        continue;
                    };
                    if core::ptr::eq(other.rule, limit.rule)
                        || !self.decides_for((other, strict), (limit, quota))
                    {
                        continue;
                    }
                    let other = other.rule.name.as_str();
                    let text = format!(
                        "{name:?} never decides for the tier {:?}, since {other:?} with {} is stricter: raise {other:?} for it \
                         too, or lower {name:?}",
                        tier_name.as_str(),
                        QuotaText::from(*strict)
                    );
                    let place = Place::of("tiers")
                        .field(tier_name.as_str())
                        .field("limits")
                        .field(name);
                    self.warning(place, text);
                    break;
                }
            }
        }
    }

    /// Returns the quota of a limit for the clients of a tier; `None` if the limit does not apply to them.
    fn quota_in(&self, tier: &'d TierRule, limit: PlacedLimit<'d>) -> Option<&'d Quota> {
        let mut next = Some(tier);
        for _ in 0..=MAX_EXTENDED {
            let Some(tier) = next else { break };
            if let Some(grant) = tier.limits.get(limit.rule.name.as_str()) {
                return grant.quota();
            }
            next = tier
                .extends
                .as_ref()
                .and_then(|name| self.document.tiers.get(name.as_str()));
        }
        Some(limit.rule.quota.quota())
    }

    /// Returns whether a limit refuses whatever another one would.
    fn decides_for(
        &self,
        (strict, one_quota): Counting<'_>,
        (loose, other_quota): Counting<'_>,
    ) -> bool {
        let (one, other) = (strict.rule, loose.rule);
        let key = |key| -> &crate::document::KeyRule { Option::unwrap_or(key, self.default_key()) };
        // A request that waits for its turn is counted by the other limit before that comes.
        let waits = one
            .max_wait
            .is_some_and(|longest| !Duration::from(longest).is_zero());
        let is_plain =
            !waits && !one.shadow && !one.at_most && one.settle.is_none() && other.settle.is_none();
        let same_requests = (one.when.is_none() || one.when == other.when)
            && (one.unless.is_none() || one.unless == other.unless);
        let same_cost = match (&one.cost, &other.cost) {
            (None, None) => true,
            (Some(CostText::Code(_)), _) => false,
            (one, other) => one == other,
        };
        let same_choices = self.choices(one) == self.choices(other);
        // Of two that are alike, the later is useless. A limit with a penalty does more than refuse.
        let comes_first = || {
            strict.route.is_none() && loose.route.is_some() || (strict.position < loose.position)
        };
        is_plain
            && same_requests
            && same_cost
            && same_choices
            && other.penalty.is_none()
            && !other.shadow
            && key(one.key.as_ref()) == key(other.key.as_ref())
            && is_stricter(one_quota, other_quota)
            && (!is_stricter(other_quota, one_quota) || comes_first())
    }

    /// Returns what a limit does with requests without its key, and without its store.
    fn choices(&self, rule: &LimitRule) -> (MissingRule, StoreFailureRule) {
        let defaults = &self.document.defaults;
        let missing = rule
            .missing
            .or(defaults.missing)
            .unwrap_or(MissingRule::Share);
        let on_store_failure = rule
            .on_store_failure
            .or(defaults.on_store_failure)
            .unwrap_or(StoreFailureRule::Allow);
        (missing, on_store_failure)
    }
}
