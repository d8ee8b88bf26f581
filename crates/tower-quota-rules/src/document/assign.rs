use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Many;
use crate::text::{KeyPattern, NameText};

/// Assigns a tier to keys by patterns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AssignRule {
    /// The keys.
    pub key: Many<KeyPattern>,
    /// The tier.
    pub tier: NameText,
}
