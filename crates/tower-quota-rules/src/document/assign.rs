use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Many, Match};
use crate::text::{KeyPattern, TierText};

/// Assigns a tier to clients. All given fields must match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AssignRule {
    /// The key of `defaults`, as text. The default is any key.
    pub key: Option<Many<KeyPattern>>,
    /// The requests, for example by a header or a claim. The default is all requests.
    pub when: Option<Many<Match>>,
    /// The tier, or `code NAME` for a tier from your code.
    pub tier: TierText,
}
