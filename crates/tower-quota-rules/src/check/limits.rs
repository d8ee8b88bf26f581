//! Checks single limits.

use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;

use tower_quota::key::KeyExtractor;
use tower_quota::{Algorithm, Over, Penalty, Quota, RequestHead};

use super::{Checker, PlacedLimit, all_limits};
use crate::code_parts::CodeParts;
use crate::document::{KeyRule, LimitRule, PenaltyRule};
use crate::problem::DocumentPlace;
use crate::text::{CostText, KeyText};

impl<'d> Checker<'d> {
    pub(super) fn limits(&mut self) {
        self.most_limits();
        for limit in all_limits(self.document) {
            let place = limit.place();
            self.quota(limit.rule, limit.rule.quota.quota(), || {
                place.field("quota")
            });
            self.waits(limit, &place);
            if limit.rule.when_degraded.is_some() && limit.rule.on_store_failure.is_some() {
                let text = format_args!(
                    "{:?} has two choices for an outage: remove \"on_store_failure\" or \"when_degraded\"",
                    limit.rule.name.as_str()
                );
                self.error(place.field("when_degraded"), text);
            }
            self.penalty(limit.rule, &place);
            if limit.rule.cost == Some(CostText::Constant(0)) {
                let name = limit.rule.name.as_str();
                let text = format_args!(
                    "a cost of 0 charges nothing, so that {name:?} limits no client: give at least 1"
                );
                self.warning(place.field("cost"), text);
            }
        }
    }

    /// Checks that a quota counts in the way of the limit, can admit a request, and can be divided among the instances.
    pub(super) fn quota(
        &mut self,
        rule: &LimitRule,
        quota: &Quota,
        place: impl Fn() -> DocumentPlace,
    ) {
        let is_hold = |quota: &Quota| quota.algorithm() == Algorithm::Concurrent;
        let counting = match (is_hold(rule.quota.quota()), is_hold(quota)) {
            (true, false) => Some(("requests in progress", "2 at once")),
            (false, true) => Some(("per period", "100/minute")),
            _ => None,
        };
        if let Some((counts, example)) = counting {
            let text = format_args!(
                "{:?} counts {counts}, and this quota does not: give one such as {example:?}",
                rule.name.as_str()
            );
            self.error(place(), text);
        }
        let quota = rule.counted(quota);
        let cost = match rule.cost {
            Some(CostText::Constant(units)) => units,
            _ => 1,
        };
        if cost > quota.capacity() && !rule.at_most {
            let text = format_args!(
                "a request costs {cost}, and {:?} never holds more than {}, so that every request is refused: lower the cost or raise the quota",
                rule.name.as_str(),
                quota.capacity()
            );
            self.error(place(), text);
        }
        if let Some(instances) = self.document.instances.filter(|instances| *instances > 1)
            && let Err(error) = quota.try_divided(instances)
        {
            self.error(place(), error);
        }
    }

    fn waits(&mut self, limit: PlacedLimit<'d>, place: &DocumentPlace) {
        let rule = limit.rule;
        let quota = rule.quota.quota();
        // Accept a wait if a tier counts the same limit in a bucket.
        let counts_in_bucket = || {
            let tiers = self.document.tiers.values().map(|tier| &tier.limits);
            let overrides = self.document.overrides.values();
            tiers
                .chain(overrides.map(|single| &single.limits))
                .filter_map(|grants| grants.get(rule.name.as_str())?.quota())
                .any(|quota| quota.algorithm().is_bucket())
        };
        let waits = rule
            .max_wait
            .is_some_and(|longest| !Duration::from(longest).is_zero());
        if waits && !quota.algorithm().is_bucket() && !counts_in_bucket() {
            let text = format_args!(
                "{:?} cannot make requests wait, since a {} has no turns: remove \"max_wait\", or count in a bucket",
                rule.name.as_str(),
                quota.algorithm()
            );
            self.error(place.field("max_wait"), text);
        }
        let never_waits = !waits && quota.algorithm() != Algorithm::LeakyBucket;
        if rule.wait_jitter.is_some() && never_waits {
            let name = rule.name.as_str();
            let text = format_args!(
                "{name:?} makes no request wait: add \"max_wait\", or remove \"wait_jitter\""
            );
            self.warning(place.field("wait_jitter"), text);
        }
    }

    fn penalty(&mut self, rule: &'d LimitRule, place: &DocumentPlace) {
        let Some(penalty) = rule.penalty else { return };
        let place = place.field("penalty");
        if penalty.after == 0 {
            self.error(
                place.field("after"),
                "a penalty after 0 refusals blocks before it refuses: give at least 1",
            );
        } else if let Err(error) = Penalty::try_from(penalty) {
            self.error(place.clone(), error);
        } else if penalty.block.is_some() && !can_exceed(penalty, rule.quota.quota()) {
            let text = format_args!(
                "a client of {:?} waits longer for its quota than for the penalty, so that the penalty blocks no client: raise \
                 \"most\" above the period of the quota",
                rule.name.as_str()
            );
            self.error(place.field("block"), text);
        }
        if rule.over.map(Over::from) == Some(Over::Flag) {
            let text =
                "a limit that flags requests blocks no client: remove \"penalty\" or \"over\"";
            self.warning(place.clone(), text);
        }
        let key = rule.key.as_ref().unwrap_or(self.document.defaults.key());
        let is_chosen = rule.missing.or(self.document.defaults.missing).is_some();
        if !is_chosen && may_be_missing(key, self.parts) {
            let name = rule.name.as_str();
            let text = format_args!(
                "the penalty of {name:?} would let one client without a key block all others without one: add \"missing\", or a \
                 key that is always there such as \"client_ip\""
            );
            self.error(place, text);
        }
    }
}

fn can_exceed(penalty: PenaltyRule, quota: &Quota) -> bool {
    let wait = match u32::try_from(quota.units()) {
        Ok(units @ 1..) if quota.algorithm().is_bucket() => quota.period() / units,
        _ => quota.period(),
    };
    penalty.longest().is_some_and(|longest| longest > wait)
}

fn may_be_missing(key: &KeyRule, parts: &CodeParts) -> bool {
    match key {
        KeyRule::One(KeyText::None | KeyText::ClientIp { .. }) => false,
        KeyRule::One(KeyText::Value(key)) => is_missing(key),
        KeyRule::One(KeyText::Code(name)) => parts
            .keys
            .get(name.as_str())
            .is_some_and(|extractor| is_missing(&**extractor)),
        KeyRule::First(keys) => keys.iter().all(|key| may_be_missing(key, parts)),
        KeyRule::All { all: keys } => keys.iter().any(|key| may_be_missing(key, parts)),
    }
}

fn is_missing(extractor: &dyn KeyExtractor) -> bool {
    let mut request = http::Request::new(());
    // Give the request a peer, because the layer refuses a request without one as an error of the
    // server.
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    request.extensions_mut().insert(peer);
    extractor.extract(&RequestHead::of(&request)).is_none()
}
