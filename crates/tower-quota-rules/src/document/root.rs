use std::collections::HashSet;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AssignRule, ClientIpRule, Defaults, LimitRule, Many, Match, OverrideRule, RouteRule, Sample,
    TierRule,
};
use crate::text::{HeaderText, NameText};

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
    /// The file whose limits come before the limits of this file, by its path from the folder of this file.
    pub include: Option<Box<str>>,
    /// The defaults of limits.
    #[serde(default, skip_serializing_if = "Defaults::is_empty")]
    pub defaults: Defaults,
    /// How the key `client_ip` reads addresses.
    #[serde(default, skip_serializing_if = "ClientIpRule::is_empty")]
    pub client_ip: ClientIpRule,
    /// The headers that your gateway sets, and removes from the requests of clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted_headers: Vec<HeaderText>,
    /// The most instances of the service, for dividing local limits. The default is 1.
    #[schemars(range(min = 1))]
    pub instances: Option<u32>,
    /// Closes the connection of a client after this many refusals in a row. The default is never.
    #[schemars(range(min = 1))]
    pub close_after: Option<u32>,
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
    /// Assigns tiers to clients. The first match wins.
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
    /// `true` as the last line shows that the document is complete. A later document without the line is an error.
    pub end: Option<bool>,
}

impl Document {
    /// Returns all limits, the limits of every request first.
    pub fn all_limits(&self) -> impl Iterator<Item = &LimitRule> {
        let of_routes = self.routes.iter().flat_map(|route| &route.limits);
        self.limits.iter().chain(of_routes)
    }

    pub(crate) fn all_limits_mut(&mut self) -> impl Iterator<Item = &mut LimitRule> {
        let of_routes = self.routes.iter_mut().flat_map(|route| &mut route.limits);
        self.limits.iter_mut().chain(of_routes)
    }

    /// Returns all matches of limits, routes, assignments and lists, and the matches that must not hold.
    pub(crate) fn all_matches(&self) -> Vec<&Match> {
        let conditions = self
            .all_limits()
            .flat_map(|limit| [&limit.when, &limit.unless])
            .chain(self.assign.iter().map(|rule| &rule.when));
        let mut rest: Vec<&Match> = conditions.flat_map(Many::of).collect();
        rest.extend(self.routes.iter().map(|route| &route.matching));
        rest.extend(self.lists().iter().flat_map(|(_, list)| *list));
        let mut all = Vec::new();
        while let Some(matching) = rest.pop() {
            all.push(matching);
            rest.extend(Many::of(&matching.not));
        }
        all
    }

    /// Returns a tier and the tiers that it extends, the nearest first. A cycle ends after all tiers.
    pub(crate) fn extended(&self, tier: &str) -> impl Iterator<Item = &TierRule> {
        let first = self.tiers.get(tier);
        let next = |rule: &&TierRule| self.tiers.get(rule.extends.as_ref()?);
        core::iter::successors(first, next).take(self.tiers.len())
    }

    /// Returns whether an assignment compares the key of `defaults`.
    pub(crate) fn assigns_by_key(&self) -> bool {
        self.assign.iter().any(|rule| rule.key.is_some())
    }

    /// Returns the names of the limits that another document lacks.
    #[must_use]
    pub fn lost_limits<'d>(&'d self, new: &Self) -> Vec<&'d str> {
        let kept: HashSet<&str> = new.all_limits().map(|rule| rule.name.as_str()).collect();
        let names = self.all_limits().map(|rule| rule.name.as_str());
        names.filter(|name| !kept.contains(name)).collect()
    }

    pub(crate) fn lists(&self) -> [(&'static str, &[Match]); 3] {
        [
            ("skip", &self.skip),
            ("allow", &self.allow),
            ("block", &self.block),
        ]
    }
}
