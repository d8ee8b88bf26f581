use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Grant;
use crate::text::NameText;

/// The expected result of a sample request, before other requests are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The outcome.
    pub outcome: Option<OutcomeText>,
    /// The tier.
    pub tier: Option<NameText>,
    /// All applicable limits with their quotas. Use `unlimited` for a limit that must not apply.
    pub limits: Option<IndexMap<NameText, Grant>>,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeText {
    /// The request is not counted.
    Skipped,
    /// The request is admitted without counting, and cannot be blocked.
    Allowed,
    /// The request is blocked.
    Blocked,
    /// Limits decide and count the request.
    Counted,
}
