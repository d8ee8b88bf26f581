//! Limits of a policy, made from those of a document.

use core::fmt;
use std::sync::Arc;

use tower_quota::settle::{
    Settle, body_bytes, by_handler, only_failures, only_successes, try_cost_header,
};
use tower_quota::when::{self, Condition};
use tower_quota::{Limit, Penalty, Quota, cost};

use super::conditions::{Context, condition};
use super::keys::Keys;
use super::unknown::unknown_code;
use crate::document::{Defaults, KeyRule, LimitRule, Many, Match};
use crate::problem::{Place, Problem};
use crate::text::{AbandonedText, CostText, KeyText, SettleText};

/// Makes the limits of a document.
#[derive(Clone, Copy)]
pub(crate) struct Limits<'a> {
    pub(crate) defaults: &'a Defaults,
    pub(crate) keys: Keys<'a>,
    pub(crate) context: Context<'a>,
}

/// Returns the key of `defaults`.
pub(crate) fn default_key(defaults: &Defaults) -> KeyRule {
    defaults
        .key
        .clone()
        .unwrap_or(KeyRule::One(KeyText::ClientIp { v4: None, v6: None }))
}

impl Limits<'_> {
    /// Makes a limit. Its field `when` is left out where an index finds it by that.
    pub(crate) fn limit(
        &self,
        rule: &LimitRule,
        is_found_by_when: bool,
        place: &Place,
    ) -> Result<Limit, Problem> {
        let invalid =
            |field: &str, error: &dyn fmt::Display| Problem::error(place.field(field), error);
        let mut limit = Limit::new(&rule.name, Quota::from(rule.quota));
        limit = match &rule.key {
            Some(key) => limit.by(self.keys.extractor(key, &place.field("key"))?),
            None => limit.by(self.keys.extractor(
                &default_key(self.defaults),
                &Place::of("defaults").field("key"),
            )?),
        };
        if let Some(cost) = &rule.cost {
            limit = self.with_cost(limit, cost, &place.field("cost"))?;
        }
        if let Some(unit) = &rule.unit {
            limit = limit.unit(unit);
        }
        if let Some(matches) = rule.when.as_ref().filter(|_| !is_found_by_when) {
            limit = limit.when(self.any(matches, &place.field("when"))?);
        }
        if let Some(matches) = &rule.unless {
            limit = limit.unless(self.any(matches, &place.field("unless"))?);
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
        if let Some(penalty) = rule.penalty {
            limit = limit
                .penalty(Penalty::try_from(penalty).map_err(|error| invalid("penalty", &error))?);
        }
        if let Some(settle) = &rule.settle {
            limit = self.with_settle(limit, settle, &place.field("settle"))?;
        }
        match rule.on_abandoned {
            None => {}
            Some(AbandonedText::Keep) => limit = limit.on_abandoned(Settle::Keep),
            Some(AbandonedText::Refund) => limit = limit.on_abandoned(Settle::Cost(0)),
            Some(AbandonedText::Cost(units)) => limit = limit.on_abandoned(Settle::Cost(units)),
        }
        Ok(match rule.on_store_failure {
            Some(choice) => limit.on_store_failure(choice.into()),
            None => limit,
        })
    }

    fn any(&self, matches: &Many<Match>, place: &Place) -> Result<Box<dyn Condition>, Problem> {
        let conditions = matches
            .0
            .iter()
            .map(|matching| condition(matching, self.context, place));
        Ok(when::any(conditions.collect::<Result<Vec<_>, Problem>>()?))
    }

    fn with_cost(&self, limit: Limit, text: &CostText, place: &Place) -> Result<Limit, Problem> {
        Ok(match text {
            CostText::Constant(units) => limit.cost(*units),
            CostText::Header { name, default } => limit.cost_with(
                cost::try_header(name.as_str(), *default)
                    .map_err(|error| Problem::error(place.clone(), error))?,
            ),
            CostText::BodySize { unit, default } => {
                limit.cost_with(cost::body_size(*unit, *default))
            }
            CostText::Code(name) => {
                let known = &self.context.code.costs;
                let given = known.get(name.as_str()).map(Arc::clone);
                let unknown = || unknown_code(place.clone(), name.as_str(), known.keys());
                let given = given.ok_or_else(unknown)?;
                limit.cost_with(move |head| given(head))
            }
        })
    }

    fn with_settle(
        &self,
        limit: Limit,
        text: &SettleText,
        place: &Place,
    ) -> Result<Limit, Problem> {
        Ok(match text {
            SettleText::Handler => limit.settle(by_handler()),
            SettleText::OnlyFailures => limit.settle(only_failures()),
            SettleText::OnlySuccesses => limit.settle(only_successes()),
            SettleText::CostHeader(name) => limit.settle(
                try_cost_header(name.as_str())
                    .map_err(|error| Problem::error(place.clone(), error))?,
            ),
            SettleText::BodyBytes { unit, cut: false } => limit.settle(body_bytes(*unit)),
            SettleText::BodyBytes { unit, cut: true } => {
                limit.settle(body_bytes(*unit).cut_when_spent())
            }
            SettleText::Code(name) => {
                let known = &self.context.code.rules;
                let unknown = || unknown_code(place.clone(), name.as_str(), known.keys());
                limit.settle(
                    known
                        .get(name.as_str())
                        .map(Arc::clone)
                        .ok_or_else(unknown)?,
                )
            }
        })
    }
}
