//! A limit of the configuration.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use prost_types::Value;
use tower_quota_core::{ConfigError, Quota};

use crate::envoy::counts::Counts;
use crate::messages::ratelimit::rate_limit_response::RateLimit;
use crate::messages::ratelimit::rate_limit_response::rate_limit::Unit;

/// A limit of a descriptor.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) allowance: Allowance,
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
    pub(crate) counts: OnceLock<Counts>,
}

/// What a limit admits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Allowance {
    Quota(Quota),
    /// A limit of 0 requests.
    Nothing,
    Unlimited,
}

/// The answer while the store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnStoreFailure {
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
        let quota = match requests {
            0 => return Some(Ok(Self::new(Allowance::Nothing, 0, *unit))),
            _ => Quota::try_new(requests.into(), Duration::from_secs(*seconds)),
        };
        let rule =
            |quota: Quota| Self::new(Allowance::Quota(quota.fixed_window()), requests, *unit);
        Some(quota.map(rule))
    }

    pub(super) fn new(allowance: Allowance, requests: u32, unit: Unit) -> Self {
        Self {
            allowance,
            shown: RateLimit {
                name: String::new(),
                requests_per_unit: requests,
                unit: unit.into(),
            },
            replaces: Box::default(),
            is_shadow: false,
            is_quota: false,
            post_charge: false,
            on_store_failure: OnStoreFailure::Allow,
            metadata: None,
            is_detailed: false,
            names_values: false,
            counts: OnceLock::new(),
        }
    }

    pub(crate) const fn is_unlimited(&self) -> bool {
        matches!(self.allowance, Allowance::Unlimited)
    }

    /// Returns the quota of a limit that the store counts.
    pub(crate) const fn quota(&self) -> Option<&Quota> {
        match &self.allowance {
            Allowance::Quota(quota) => Some(quota),
            _ => None,
        }
    }
}
