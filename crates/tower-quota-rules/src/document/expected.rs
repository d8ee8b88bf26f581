//! The expected result of a sample request.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Grant;
use crate::text::NameText;

/// The expected result of a sample request, before any other request is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Expected {
    /// The outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeText>,
    /// The tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<NameText>,
    /// All limits that are asked, with their quotas. One that is `unlimited` is not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<IndexMap<NameText, Grant>>,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OutcomeText {
    /// The request is not counted.
    Skipped,
    /// The request is neither counted nor blocked.
    Allowed,
    /// The request is blocked.
    Blocked,
    /// The limits decide, and count the request.
    Counted,
}
