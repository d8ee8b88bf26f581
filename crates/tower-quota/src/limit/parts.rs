//! The parts of a limit as data.

use super::{Cost, Limit};
use crate::described::Described;
use crate::policy::LimitParts;

impl Limit {
    /// Returns the parts of this limit as data.
    pub(crate) fn parts(&self) -> LimitParts {
        let cost = match &self.cost {
            Cost::Constant(units) => Some(Described::Number(*units)),
            Cost::Computed { description, .. } => description.clone(),
        };
        LimitParts {
            name: self.name,
            quota: self.quota,
            key: self.extractor.describe(),
            cost,
            unit: self.unit,
            conditions: self
                .conditions
                .iter()
                .map(|condition| condition.describe())
                .collect(),
            has_run_time_quota: self.run_time_quota.is_some(),
            missing: self.missing,
            max_wait: self.longest_wait,
            wait_jitter: self.jitter,
            counts_refusals: self.counts_refusals,
            is_exact: self.is_exact,
            is_shadow: self.is_shadow,
            is_at_most: self.is_at_most,
            penalty: self.penalty,
            settle: self
                .settle_rule
                .as_ref()
                .map(|settle| (settle.rule.describe(), settle.abandoned)),
            on_store_failure: self.on_store_failure,
        }
    }
}
