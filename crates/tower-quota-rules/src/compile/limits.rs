use std::sync::Arc;

use tower_quota::settle::{body_bytes, by_handler, cost_header, only_failures, only_successes};
use tower_quota::{Limit, Penalty, Quota, cost};

use super::conditions::{Context, any_of};
use crate::document::LimitRule;
use crate::text::{CostText, SettleText};

impl Context<'_> {
    /// Creates a limit. Omits `when` if an index finds the limit by it.
    pub(crate) fn limit(&self, rule: &LimitRule, is_found_by_when: bool) -> Limit {
        let defaults = &self.document.defaults;
        let key = rule.key.as_ref().unwrap_or(defaults.key());
        let mut limit = Limit::new(&rule.name, Quota::from(rule.quota));
        limit = limit.by(self.extractor(key));
        if let Some(cost) = &rule.cost {
            limit = self.with_cost(limit, cost);
        }
        if let Some(unit) = &rule.unit {
            limit = limit.unit(unit);
        }
        let any = |matches| any_of(matches, |matching| self.condition(matching));
        if !is_found_by_when && let Some(when) = any(&rule.when) {
            limit = limit.when(when);
        }
        if let Some(unless) = any(&rule.unless) {
            limit = limit.unless(unless);
        }
        if let Some(missing) = rule.missing.or(defaults.missing) {
            limit = limit.when_missing(missing.into());
        }
        if let Some(longest) = rule.max_wait {
            limit = limit.max_wait(longest.into());
        }
        if let Some(longest) = rule.wait_jitter {
            limit = limit.wait_jitter(longest.into());
        }
        if rule.count_refusals {
            limit = limit.count_refusals();
        }
        if rule.exact {
            limit = limit.exact();
        }
        if rule.shadow {
            limit = limit.shadow();
        }
        if rule.at_most {
            limit = limit.at_most();
        }
        if rule.hidden {
            limit = limit.hidden();
        }
        if let Some(over) = rule.over {
            limit = limit.over(over.into());
        }
        if let Some(longest) = rule.longest_hold {
            limit = limit.longest_hold(longest.into());
        }
        if let Some(words) = &rule.describe_key {
            limit = limit.describe_key(String::from(words.as_str()));
        }
        if let Some(degraded) = &rule.when_degraded {
            let by = match &degraded.key {
                Some(by) => self.single(by),
                None => self.extractor(key),
            };
            limit = limit.when_degraded(degraded.quota.into(), by);
        }
        if let Some(Ok(penalty)) = rule.penalty.map(Penalty::try_from) {
            limit = limit.penalty(penalty);
        }
        if let Some(settle) = &rule.settle {
            limit = self.with_settle(limit, settle);
        }
        if let Some(settle) = rule.on_abandoned {
            limit = limit.on_abandoned(settle.into());
        }
        match rule.on_store_failure {
            Some(choice) => limit.on_store_failure(choice.into()),
            None => limit,
        }
    }

    fn with_cost(&self, limit: Limit, text: &CostText) -> Limit {
        match text {
            CostText::Constant(units) => limit.cost(*units),
            CostText::Header { name, default } => {
                limit.cost_with(cost::header(name.as_str(), *default))
            }
            CostText::BodySize { unit, default } => {
                limit.cost_with(cost::body_size(*unit, *default))
            }
            CostText::Code(name) => match self.code.costs.get(name.as_str()) {
                Some(given) => {
                    let given = Arc::clone(given);
                    limit.cost_with(move |head| given(head))
                }
                None => limit,
            },
        }
    }

    fn with_settle(&self, limit: Limit, text: &SettleText) -> Limit {
        match text {
            SettleText::Handler => limit.settle(by_handler()),
            SettleText::OnlyFailures => limit.settle(only_failures()),
            SettleText::OnlySuccesses => limit.settle(only_successes()),
            SettleText::CostHeader(name) => limit.settle(cost_header(name.as_str())),
            SettleText::BodyBytes { unit, cut: false } => limit.settle(body_bytes(*unit)),
            SettleText::BodyBytes { unit, cut: true } => {
                limit.settle(body_bytes(*unit).cut_when_spent())
            }
            SettleText::Code(name) => match self.code.rules.get(name.as_str()) {
                Some(given) => limit.settle(Arc::clone(given)),
                None => limit,
            },
        }
    }
}
