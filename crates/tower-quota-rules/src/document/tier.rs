use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Grants;
use crate::text::NameText;

/// A tier, with the quotas of its clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TierRule {
    /// The tier with the quotas that this tier omits.
    pub extends: Option<NameText>,
    /// The quotas by the names of limits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: Grants,
}

/// The tier and quotas of a key. The quotas take precedence over the tier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverrideRule {
    /// The tier of the key, instead of the assigned tier.
    pub tier: Option<NameText>,
    /// The quotas by the names of limits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: Grants,
}
