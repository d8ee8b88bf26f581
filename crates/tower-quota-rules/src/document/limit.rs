//! One limit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{KeyRule, Many, Match, MissingRule, PenaltyRule, StoreFailureRule, is_unset};
use crate::text::{AbandonedText, CostText, DurationText, NameText, QuotaText, SettleText};

/// One limit. Its name and its quota are all that it needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitRule {
    /// The name, which clients see and counters are stored by.
    pub name: NameText,
    /// The quota of each key.
    pub quota: QuotaText,
    /// The counted key. The default is the key of `defaults`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyRule>,
    /// The cost of a request. The default is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostText>,
    /// The unit that is counted, for clients. The default is requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<NameText>,
    /// The requests that it applies to: those that match one of these. The default is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Many<Match>>,
    /// The requests that it does not apply to: those that match one of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unless: Option<Many<Match>>,
    /// The choice for requests without the key. The default is the choice of `defaults`, or to refuse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<MissingRule>,
    /// The longest wait of a request for its turn. The default is 30s for leaky buckets, and none for other quotas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait: Option<DurationText>,
    /// The most random time that is added to a wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_jitter: Option<DurationText>,
    /// Charges refused requests too.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub count_refusals: bool,
    /// Decides each request by the store itself, and never from units taken in advance.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub exact: bool,
    /// Evaluates and reports the limit, and never enforces it: a dry run.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub shadow: bool,
    /// Grants as many units as are left, if that is less than the cost.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub at_most: bool,
    /// Blocks clients that keep asking while they are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub penalty: Option<PenaltyRule>,
    /// The rule by which the cost is corrected when the request is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<SettleText>,
    /// The final cost of a settled request without a response. The default is `keep`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_abandoned: Option<AbandonedText>,
    /// The choice for requests while the store is unavailable. The default is that of `defaults`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_store_failure: Option<StoreFailureRule>,
}

impl LimitRule {
    /// Makes a limit of this name and quota, and no options.
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
