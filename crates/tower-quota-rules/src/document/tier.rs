//! Tiers and overrides of single keys.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Grants;
use crate::text::NameText;

/// A tier: quotas for the clients that are assigned to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TierRule {
    /// The tier whose quotas hold where this one gives none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extends: Option<NameText>,
    /// The quotas by the names of limits.
    #[serde(skip_serializing_if = "Grants::is_empty")]
    pub limits: Grants,
}

/// The tier and quotas of a single key. Its quotas win over those of its tier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OverrideRule {
    /// The tier of the key, instead of the assigned one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<NameText>,
    /// The quotas by the names of limits.
    #[serde(skip_serializing_if = "Grants::is_empty")]
    pub limits: Grants,
}
