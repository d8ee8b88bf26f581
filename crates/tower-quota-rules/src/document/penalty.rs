//! Penalties for refused requests.

use core::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tower_quota::{ConfigError, Penalty};

use crate::text::DurationText;

/// A penalty for clients that keep asking while they are refused: a [`Penalty`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PenaltyRule {
    /// The refusals in a row that are free.
    #[schemars(range(min = 1))]
    pub after: u64,
    /// The time that each further refusal adds to the block, and that it takes to forgive one. The default is 1m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<DurationText>,
    /// The longest block. The default is 1h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<DurationText>,
}

impl TryFrom<PenaltyRule> for Penalty {
    type Error = ConfigError;

    fn try_from(rule: PenaltyRule) -> Result<Self, ConfigError> {
        let step = rule.step.map_or(Duration::from_secs(60), Duration::from);
        let most = rule.most.map_or(Duration::from_secs(3_600), Duration::from);
        Self::try_new(rule.after, step, most)
    }
}
