use core::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tower_quota::{Limit, Quota};

use super::{KeyRule, Many, Match, MissingRule, PenaltyRule, StoreFailureRule};
use crate::text::{
    AbandonedText, CostText, DegradedText, DurationText, NameText, OverText, QuotaText, SettleText,
    WordsText,
};

/// A limit. Only the name and the quota are required.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitRule {
    /// The name, for clients and for stored counters.
    pub name: NameText,
    /// The quota of every key.
    pub quota: QuotaText,
    /// The counted key. The default is the key of `defaults`.
    pub key: Option<KeyRule>,
    /// The cost of a request. The default is 1.
    pub cost: Option<CostText>,
    /// The counted unit, for clients. The default is requests.
    pub unit: Option<NameText>,
    /// The limit applies to matching requests. The default is all requests.
    pub when: Option<Many<Match>>,
    /// The limit does not apply to matching requests.
    pub unless: Option<Many<Match>>,
    /// The answer to requests without the key. The default is the choice of `defaults`, or to
    /// refuse.
    pub missing: Option<MissingRule>,
    /// The longest wait of a request. The default is 30s for leaky buckets, and no wait for other
    /// quotas.
    pub max_wait: Option<DurationText>,
    /// The longest random time added to a wait.
    pub wait_jitter: Option<DurationText>,
    /// Charges refused requests too.
    #[serde(default)]
    pub count_refusals: bool,
    /// Decides every request in the store, without leased units.
    #[serde(default)]
    pub exact: bool,
    /// Evaluates and reports the limit without enforcing it.
    #[serde(default)]
    pub shadow: bool,
    /// Grants the remaining units if the cost is higher.
    #[serde(default)]
    pub at_most: bool,
    /// Leaves the limit out of all header fields. Limits of requests in progress are always hidden.
    #[serde(default)]
    pub hidden: bool,
    /// What happens to requests over the quota. The default is to refuse.
    pub over: Option<OverText>,
    /// Ends the hold of a limit of requests in progress after this time, while the request runs on.
    pub longest_hold: Option<DurationText>,
    /// Blocks clients that repeat refused requests.
    pub penalty: Option<PenaltyRule>,
    /// Corrects the cost after the response.
    pub settle: Option<SettleText>,
    /// The final cost of a settled request without a response. The default is `keep`.
    pub on_abandoned: Option<AbandonedText>,
    /// The answer while the store is unavailable. The default is the choice of `defaults`.
    pub on_store_failure: Option<StoreFailureRule>,
    /// The quota while the store is unavailable, instead of `on_store_failure`. Each instance counts
    /// this quota by itself.
    pub when_degraded: Option<DegradedText>,
    /// Words for clients without the key, which complete "it has no ..".
    pub describe_key: Option<WordsText>,
}

impl LimitRule {
    /// Returns a quota of the limit as it is counted. Without a queue in the quota, a leaky bucket queues for the
    /// limit's longest wait.
    pub(crate) fn counted(&self, quota: &Quota) -> Quota {
        let longest = self.max_wait.map(Duration::from);
        quota.for_waits_of(longest.unwrap_or(Limit::DEFAULT_MAX_WAIT))
    }

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
            hidden: false,
            over: None,
            longest_hold: None,
            penalty: None,
            settle: None,
            on_abandoned: None,
            on_store_failure: None,
            when_degraded: None,
            describe_key: None,
        }
    }
}
