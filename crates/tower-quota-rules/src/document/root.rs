use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AssignRule, ClientIpRule, Defaults, LimitRule, Match, OverrideRule, RouteRule, Sample, TierRule,
};
use crate::text::NameText;

/// The rules of a service.
///
/// If you serialize a document yourself, unset fields are `null` or `false`. [`to_text`](Self::to_text) leaves them out.
///
/// ```
/// use tower_quota_rules::Rules;
///
/// let rules = Rules::parse("limits:\n  - name: minute\n    quota: 100/minute\n")?;
/// assert_eq!(rules.document().limits[0].name.as_str(), "minute");
/// # Ok::<(), tower_quota_rules::Problems>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The version of the format, 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: Option<u32>,
    /// The defaults of limits.
    #[serde(default, skip_serializing_if = "Defaults::is_empty")]
    pub defaults: Defaults,
    /// How the key `client_ip` reads addresses.
    #[serde(default, skip_serializing_if = "ClientIpRule::is_empty")]
    pub client_ip: ClientIpRule,
    /// The most instances of the service, for dividing local limits. The default is 1.
    #[schemars(range(min = 1))]
    pub instances: Option<u32>,
    /// The percentage of every quota in the store of a region, for `Regional` stores.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub regions: IndexMap<NameText, u32>,
    /// The percentages that `regions` replaced in the last two windows of the longest quota.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_regions: Vec<IndexMap<NameText, u32>>,
    /// The limits of every request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitRule>,
    /// Tiers by name, with the quotas of their clients.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub tiers: IndexMap<NameText, TierRule>,
    /// Assigns tiers to keys by patterns. The first match wins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assign: Vec<AssignRule>,
    /// Tiers and quotas of single keys.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub overrides: IndexMap<Box<str>, OverrideRule>,
    /// Additional limits of some requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteRule>,
    /// Requests that are not counted. Blocked clients stay blocked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip: Vec<Match>,
    /// Requests that are admitted without counting, even from blocked clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Match>,
    /// Requests that are blocked, unless they are allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block: Vec<Match>,
    /// Permits a document without limits.
    #[serde(default)]
    pub allow_empty: bool,
    /// Sample requests and their expected results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<Sample>,
}

impl Document {
    /// Returns all limits, the limits of every request first.
    pub fn all_limits(&self) -> impl Iterator<Item = &LimitRule> {
        let of_routes = self.routes.iter().flat_map(|route| &route.limits);
        self.limits.iter().chain(of_routes)
    }

    pub(crate) fn lists(&self) -> [(&'static str, &[Match]); 3] {
        [
            ("skip", &self.skip),
            ("allow", &self.allow),
            ("block", &self.block),
        ]
    }
}
