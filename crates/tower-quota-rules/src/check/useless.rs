//! Limits that never decide, since a stricter one counts the same requests.

use super::stricter::is_stricter;
use super::{Checker, PlacedLimit, all_limits};
use crate::text::CostText;

impl<'d> Checker<'d> {
    pub(super) fn useless(&mut self) {
        let document = self.document;
        // A quota that a tier or a single key replaces is not the only one.
        let replaced = core::mem::take(&mut self.replaced);
        let positions = self.limits.clone();
        let fixed = |limit: &PlacedLimit<'_>| {
            positions.get_index_of(limit.rule.name.as_str()).is_some_and(|position| !replaced[position])
        };
        let global: Vec<PlacedLimit<'d>> =
            all_limits(document).filter(|limit| limit.route.is_none()).filter(fixed).collect();
        for limit in all_limits(document).filter(fixed) {
            let siblings = limit.route.into_iter().flat_map(|(index, route)| {
                let limits = route.limits.iter().enumerate();
                limits.map(move |(position, rule)| PlacedLimit { rule, position, route: Some((index, route)) })
            });
            for other in global.iter().copied().chain(siblings.filter(fixed)) {
                if !self.budget.take() {
                    return;
                }
                if core::ptr::eq(other.rule, limit.rule) || !self.decides_for(other, limit) {
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

    /// Returns whether a limit refuses whatever another one would.
    fn decides_for(&self, strict: PlacedLimit<'_>, loose: PlacedLimit<'_>) -> bool {
        let (one, other) = (strict.rule, loose.rule);
        let key = |key| -> &crate::document::KeyRule { Option::unwrap_or(key, self.default_key()) };
        let is_plain = !one.shadow && !one.at_most && one.settle.is_none() && other.settle.is_none();
        let same_requests =
            (one.when.is_none() || one.when == other.when) && (one.unless.is_none() || one.unless == other.unless);
        let same_cost = match (&one.cost, &other.cost) {
            (None, None) => true,
            (Some(CostText::Code(_)), _) => false,
            (one, other) => one == other,
        };
        let (one_quota, other_quota) = (one.quota.quota(), other.quota.quota());
        // Of two that are alike, the later is useless. A limit with a penalty does more than refuse.
        let comes_first = || strict.route.is_none() && loose.route.is_some() || (strict.position < loose.position);
        is_plain
            && same_requests
            && same_cost
            && other.penalty.is_none()
            && !other.shadow
            && key(one.key.as_ref()) == key(other.key.as_ref())
            && is_stricter(one_quota, other_quota)
            && (!is_stricter(other_quota, one_quota) || comes_first())
    }
}
