use std::sync::Arc;

use tower_quota::settle::{
    Settle, body_bytes, by_handler, cost_header, only_failures, only_successes,
};
use tower_quota::when::{self, Condition};
use tower_quota::{Limit, Penalty, Quota, cost};

use super::conditions::{Context, condition};
use super::keys::Keys;
use crate::document::{Defaults, LimitRule, Many, Match};
use crate::text::{AbandonedText, CostText, SettleText};

#[derive(Clone, Copy)]
pub(crate) struct Limits<'a> {
    pub(crate) defaults: &'a Defaults,
    pub(crate) keys: Keys<'a>,
    pub(crate) context: Context<'a>,
}

impl Limits<'_> {
    /// Creates a limit. Omits `when` if an index finds the limit by it.
    pub(crate) fn limit(&self, rule: &LimitRule, is_found_by_when: bool) -> Limit {
        let key = rule.key.as_ref().unwrap_or(self.defaults.key());
        let mut limit = Limit::new(&rule.name, Quota::from(rule.quota));
        limit = limit.by(self.keys.extractor(key));
        if let Some(cost) = &rule.cost {
            limit = self.with_cost(limit, cost);
        }
        if let Some(unit) = &rule.unit {
            limit = limit.unit(unit);
        }
        if let Some(matches) = rule.when.as_ref().filter(|_| !is_found_by_when) {
            limit = limit.when(self.any(matches));
        }
        if let Some(matches) = &rule.unless {
            limit = limit.unless(self.any(matches));
        }
        if let Some(missing) = rule.missing.or(self.defaults.missing) {
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
        if let Some(Ok(penalty)) = rule.penalty.map(Penalty::try_from) {
            limit = limit.penalty(penalty);
        }
        if let Some(settle) = &rule.settle {
            limit = self.with_settle(limit, settle);
        }
        match rule.on_abandoned {
            None => {}
            Some(AbandonedText::Keep) => limit = limit.on_abandoned(Settle::Keep),
            Some(AbandonedText::Refund) => limit = limit.on_abandoned(Settle::Cost(0)),
            Some(AbandonedText::Cost(units)) => limit = limit.on_abandoned(Settle::Cost(units)),
        }
        match rule.on_store_failure {
            Some(choice) => limit.on_store_failure(choice.into()),
            None => limit,
        }
    }

    fn any(&self, matches: &Many<Match>) -> Box<dyn Condition> {
        let matches = matches.0.iter();
        when::any(matches.map(|matching| condition(matching, self.context)))
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
            CostText::Code(name) => match self.context.code.costs.get(name.as_str()) {
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
            SettleText::Code(name) => match self.context.code.rules.get(name.as_str()) {
                Some(given) => limit.settle(Arc::clone(given)),
                None => limit,
            },
        }
    }
}
