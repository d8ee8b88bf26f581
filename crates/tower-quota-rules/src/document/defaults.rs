//! Defaults of limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tower_quota::{MissingKey, OnStoreFailure};

use super::KeyRule;
use crate::text::KeyText;

/// The choices of limits that have none of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Defaults {
    /// The key that limits count by, and that tiers, overrides and patterns of keys mean. The default is `client_ip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyRule>,
    /// The choice for requests while the store is unavailable. The default is `allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_store_failure: Option<StoreFailureRule>,
    /// The choice for requests without the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<MissingRule>,
}

impl Defaults {
    /// Returns the key that limits count by, and that tiers, overrides and patterns of keys mean.
    pub(crate) fn key(&self) -> &KeyRule {
        const CLIENT_IP: &KeyRule = &KeyRule::One(KeyText::ClientIp { v4: None, v6: None });
        self.key.as_ref().unwrap_or(CLIENT_IP)
    }

    /// Returns whether nothing is set.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The choice for requests without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissingRule {
    /// All such requests share one counter.
    Share,
    /// The limit does not apply.
    Skip,
    /// The request is refused as a bad request.
    Refuse,
    /// The request is refused for missing credentials.
    Unauthenticated,
}

impl From<MissingRule> for MissingKey {
    fn from(rule: MissingRule) -> Self {
        match rule {
            MissingRule::Share => Self::ShareOneCounter,
            MissingRule::Skip => Self::Skip,
            MissingRule::Refuse => Self::Refuse,
            MissingRule::Unauthenticated => Self::Unauthenticated,
        }
    }
}

/// The choice for requests while the store is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoreFailureRule {
    /// Lets the request through: fail open.
    Allow,
    /// Refuses the request: fail closed.
    Refuse,
    /// Counts the request in this process, by its share of the quota.
    Local,
}

impl From<StoreFailureRule> for OnStoreFailure {
    fn from(rule: StoreFailureRule) -> Self {
        match rule {
            StoreFailureRule::Allow => Self::Allow,
            StoreFailureRule::Refuse => Self::Refuse,
            StoreFailureRule::Local => Self::Local,
        }
    }
}
