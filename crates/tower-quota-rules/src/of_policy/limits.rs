//! Limits of documents, from the parts of those of a policy.

use core::str::FromStr;
use core::time::Duration;

use tower_quota::settle::Settle;
use tower_quota::{Described, LimitParts, MissingKey, Penalty};

use super::conditions::every;
use super::error::PolicyPrintError;
use super::{Printer, store_failure};
use crate::document::{LimitRule, Many, MissingRule, PenaltyRule};
use crate::text::{AbandonedText, CostText, NameText, QuotaText, SettleText, TextError};

impl Printer {
    pub(super) fn limit(&mut self, limit: &LimitParts) -> Result<LimitRule, PolicyPrintError> {
        let place = format!("limit {:?}", limit.name.as_str());
        let code = |part| PolicyPrintError::Code {
            place: place.clone(),
            part,
        };
        if limit.has_run_time_quota || limit.quota.is_calendar() {
            return Err(code("quota"));
        }
        // As it is written: the length of a queue that only depends on the wait is left out.
        let quota = read(&QuotaText::from(limit.quota).to_string(), &place)?;
        let mut rule = LimitRule::new(name(limit.name.as_str(), &place)?, quota);
        rule.key = Some(self.key(limit.key.as_ref(), &place)?);
        rule.cost = match limit.cost.as_ref().ok_or_else(|| code("cost"))? {
            Described::Number(1) => None,
            Described::Number(units) => Some(CostText::Constant(*units)),
            Described::Text(text) => Some(read(text, &place)?),
            _ => return Err(code("cost")),
        };
        rule.unit = limit
            .unit
            .map(|unit| name(unit.as_str(), &place))
            .transpose()?;
        self.add_conditions(&mut rule, limit, &place)?;
        let default = self.document.defaults.missing.map(|_| MissingRule::Share);
        rule.missing = limit.missing.map(missing).or(default);
        rule.max_wait = limit.max_wait.map(Into::into);
        rule.wait_jitter = Some(limit.wait_jitter)
            .filter(|jitter| !jitter.is_zero())
            .map(Into::into);
        rule.count_refusals = limit.counts_refusals;
        rule.exact = limit.is_exact;
        rule.shadow = limit.is_shadow;
        rule.at_most = limit.is_at_most;
        rule.penalty = limit.penalty.as_ref().map(penalty);
        if let Some((settle, abandoned)) = &limit.settle {
            let Some(Described::Text(text)) = settle else {
                return Err(code("settle rule"));
            };
            rule.settle = Some(read::<SettleText>(text, &place)?);
            rule.on_abandoned = match abandoned {
                Settle::Keep => None,
                Settle::Refund | Settle::Cost(0) => Some(AbandonedText::Refund),
                Settle::Cost(units) => Some(AbandonedText::Cost(*units)),
                _ => return Err(code("choice for abandoned requests")),
            };
        }
        rule.on_store_failure = limit.on_store_failure.map(store_failure);
        Ok(rule)
    }

    /// Adds the conditions, all of which must hold.
    fn add_conditions(
        &mut self,
        rule: &mut LimitRule,
        limit: &LimitParts,
        place: &str,
    ) -> Result<(), PolicyPrintError> {
        let (mut when, mut unless) = (Vec::new(), Vec::new());
        for condition in &limit.conditions {
            match condition {
                Some(Described::Fields(fields)) if fields.len() == 1 && fields[0].0 == "not" => {
                    unless.extend(self.matches(Some(&fields[0].1), place)?);
                }
                condition => when.push(self.matches(condition.as_ref(), place)?),
            }
        }
        rule.when = (!when.is_empty()).then(|| Many(every(when)));
        rule.unless = (!unless.is_empty()).then_some(Many(unless));
        Ok(())
    }
}

fn read<T: FromStr<Err = TextError>>(text: &str, place: &str) -> Result<T, PolicyPrintError> {
    text.parse().map_err(|error| PolicyPrintError::Text {
        place: place.to_owned(),
        error,
    })
}

fn name(text: &str, place: &str) -> Result<NameText, PolicyPrintError> {
    read(text, place)
}

fn missing(choice: MissingKey) -> MissingRule {
    match choice {
        MissingKey::Skip => MissingRule::Skip,
        MissingKey::Refuse => MissingRule::Refuse,
        MissingKey::Unauthenticated => MissingRule::Unauthenticated,
        _ => MissingRule::Share,
    }
}

fn penalty(penalty: &Penalty) -> PenaltyRule {
    let (step, steps) = (
        penalty.strikes().period(),
        u32::try_from(penalty.most_debt()).unwrap_or(u32::MAX),
    );
    let most = step.checked_mul(steps).unwrap_or(Duration::MAX);
    PenaltyRule {
        after: penalty.strikes().capacity(),
        step: Some(step.into()),
        most: Some(most.into()),
    }
}
