use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LimitRule, Match};

/// Additional limits of matching requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteRule {
    /// The requests.
    #[serde(rename = "match")]
    pub matching: Match,
    /// Their limits.
    pub limits: Vec<LimitRule>,
}
