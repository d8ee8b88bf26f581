//! A limit of the configuration.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use prost_types::Value;
use tower_quota_core::{ConfigError, Quota};

use crate::envoy::counts::Counts;
use crate::messages::ratelimit::rate_limit_response::RateLimit;
use crate::messages::ratelimit::rate_limit_response::rate_limit::Unit;

/// A limit of a descriptor. The default admits nothing.
#[derive(Debug, Default)]
pub(crate) struct Rule {
    /// What the store counts. A limit without a quota is unlimited or admits nothing.
    pub(crate) quota: Option<Quota>,
    pub(crate) is_unlimited: bool,
    /// The limit as answers show it.
    pub(crate) shown: RateLimit,
    /// The names of the limits that have no effect in a call with this limit.
    pub(crate) replaces: Box<[Box<str>]>,
    pub(crate) is_shadow: bool,
    pub(crate) is_quota: bool,
    pub(crate) post_charge: bool,
    pub(crate) on_store_failure: OnStoreFailure,
    pub(crate) metadata: Option<BTreeMap<String, Value>>,
    /// Whether the names of the counts have all values of a request.
    pub(crate) is_detailed: bool,
    /// Whether the names of the counts have values of a request.
    pub(crate) names_values: bool,
    /// Made by the first call, because most limits of a large configuration are never called.
    pub(crate) counts: OnceLock<Arc<Counts>>,
}

/// The answer while the store fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OnStoreFailure {
    #[default]
    Allow,
    Refuse,
    /// An error of gRPC, so that the setting of the gateway decides.
    Error,
}

/// The units by name, with their seconds. A month has 30 days, and a year 365 days.
pub(super) const UNITS: [(&str, (Unit, u64)); 7] = [
    ("second", (Unit::Second, 1)),
    ("minute", (Unit::Minute, 60)),
    ("hour", (Unit::Hour, 3_600)),
    ("day", (Unit::Day, 86_400)),
    ("week", (Unit::Week, 7 * 86_400)),
    ("month", (Unit::Month, 30 * 86_400)),
    ("year", (Unit::Year, 365 * 86_400)),
];

impl Rule {
    /// Makes the fixed window of a limit that comes with a descriptor. Returns `None` for an unknown unit.
    pub(crate) fn of_descriptor(requests: u32, unit: &str) -> Option<Result<Self, ConfigError>> {
        let mut units = UNITS.iter();
        let (_, (unit, seconds)) = units.find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
        let period = Duration::from_secs(*seconds);
        let quota = (requests > 0).then(|| Quota::try_new(requests.into(), period));
        let quota = quota.transpose();
        Some(quota.map(|quota| Self::new(quota.map(Quota::fixed_window), requests, *unit)))
    }

    pub(super) fn new(quota: Option<Quota>, requests_per_unit: u32, unit: Unit) -> Self {
        Self {
            quota,
            shown: RateLimit {
                requests_per_unit,
                unit: unit.into(),
                ..RateLimit::default()
            },
            ..Self::default()
        }
    }
}
