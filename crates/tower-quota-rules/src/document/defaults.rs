use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tower_quota::{MissingKey, OnStoreFailure};

use super::KeyRule;
use crate::text::KeyText;

/// Defaults of limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// The key of limits, tiers, overrides and patterns of keys. The default is `client_ip`.
    pub key: Option<KeyRule>,
    /// The answer while the store is unavailable. The default is `allow`.
    pub on_store_failure: Option<StoreFailureRule>,
    /// The answer to requests without the key.
    pub missing: Option<MissingRule>,
}

impl Defaults {
    pub(crate) fn key(&self) -> &KeyRule {
        const CLIENT_IP: &KeyRule = &KeyRule::One(KeyText::ClientIp { v4: None, v6: None });
        self.key.as_ref().unwrap_or(CLIENT_IP)
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The answer to requests without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissingRule {
    /// All requests without a key share a counter.
    Share,
    /// The limit does not apply.
    Skip,
    /// Refuses the request as a bad request.
    Refuse,
    /// Refuses the request, since credentials are missing.
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

/// The answer while the store is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoreFailureRule {
    /// Admits the request.
    Allow,
    /// Refuses the request.
    Refuse,
    /// Counts the request in this process, with a share of the quota.
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
