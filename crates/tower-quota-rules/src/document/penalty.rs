use core::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tower_quota::{ConfigError, Penalty};

use crate::text::DurationText;

/// A penalty for clients that repeat refused requests, see [`Penalty`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PenaltyRule {
    /// The number of free refusals in a row.
    #[schemars(range(min = 1))]
    pub after: u64,
    /// The time that every further refusal adds to the block. A refusal is forgiven after the same
    /// time. The default is 1m.
    pub step: Option<DurationText>,
    /// The longest block. The default is 1h.
    pub most: Option<DurationText>,
    /// Blocks a client at the longest block elsewhere too, for the same time. Needs live rules.
    pub block: Option<PenaltyBlock>,
}

/// The blocked requests of a penalised client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PenaltyBlock {
    /// All requests with the client's key.
    Everywhere,
}

impl PenaltyRule {
    /// Returns the longest block, in full steps, if the numbers are valid.
    #[must_use]
    pub fn longest(self) -> Option<Duration> {
        let penalty = Penalty::try_from(self).ok()?;
        let steps = u32::try_from(penalty.most_debt()).ok()?;
        Some(penalty.strikes().period() * steps)
    }
}

impl TryFrom<PenaltyRule> for Penalty {
    type Error = ConfigError;

    fn try_from(rule: PenaltyRule) -> Result<Self, ConfigError> {
        let step = rule.step.map_or(Duration::from_secs(60), Duration::from);
        let most = rule.most.map_or(Duration::from_secs(3_600), Duration::from);
        Self::try_new(rule.after, step, most)
    }
}
