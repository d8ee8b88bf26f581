use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{KeyRule, Many, Match, MissingRule, PenaltyRule, StoreFailureRule, is_unset};
use crate::text::{AbandonedText, CostText, DurationText, NameText, QuotaText, SettleText};

/// A limit. Only the name and the quota are required.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitRule {
    /// The name, for clients and for stored counters.
    pub name: NameText,
    /// The quota of every key.
    pub quota: QuotaText,
    /// The counted key. The default is the key of `defaults`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyRule>,
    /// The cost of a request. The default is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostText>,
    /// The counted unit, for clients. The default is requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<NameText>,
    /// The limit applies to matching requests. The default is all requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Many<Match>>,
    /// The limit does not apply to matching requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unless: Option<Many<Match>>,
    /// The answer to requests without the key. The default is the choice of `defaults`, or to
    /// refuse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<MissingRule>,
    /// The longest wait of a request. The default is 30s for leaky buckets, and no wait for other
    /// quotas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait: Option<DurationText>,
    /// The longest random time added to a wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_jitter: Option<DurationText>,
    /// Charges refused requests too.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub count_refusals: bool,
    /// Decides every request in the store, without leased units.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub exact: bool,
    /// Evaluates and reports the limit without enforcing it.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub shadow: bool,
    /// Grants the remaining units if the cost is higher.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub at_most: bool,
    /// Blocks clients that repeat refused requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub penalty: Option<PenaltyRule>,
    /// Corrects the cost after the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<SettleText>,
    /// The final cost of a settled request without a response. The default is `keep`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_abandoned: Option<AbandonedText>,
    /// The answer while the store is unavailable. The default is the choice of `defaults`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_store_failure: Option<StoreFailureRule>,
}

impl LimitRule {
    /// Creates a limit without options.
    #[must_use]
    pub const fn new(name: NameText, quota: QuotaText) -> Self {
        Self {
            name,
            quota,
            key: None,
            cost: None,
            unit: None,
            when: None,
            unless: None,
            missing: None,
            max_wait: None,
            wait_jitter: None,
            count_refusals: false,
            exact: false,
            shadow: false,
            at_most: false,
            penalty: None,
            settle: None,
            on_abandoned: None,
            on_store_failure: None,
        }
    }
}
