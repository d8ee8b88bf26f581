//! A limit of the configuration.

use core::time::Duration;

use prost_types::Struct;
use tower_quota_core::{ConfigError, Quota};

use crate::messages::ratelimit::rate_limit_response::RateLimit;
use crate::messages::ratelimit::rate_limit_response::rate_limit::Unit;

/// A limit of a descriptor.
#[derive(Clone, Debug)]
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
    pub(crate) metadata: Option<Struct>,
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

impl Rule {
    /// Makes the fixed window of a limit that comes with a descriptor.
    pub(crate) fn of_descriptor(requests: u32, unit: Unit) -> Result<Self, ConfigError> {
        let allowance = match requests {
            0 => Allowance::Nothing,
            _ => Allowance::Quota(Quota::try_new(requests.into(), period(unit))?.fixed_window()),
        };
        Ok(Self::new(allowance, requests, unit))
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

/// Returns the length of a unit, with 30 days for a month and 365 days for a year.
pub(super) const fn period(unit: Unit) -> Duration {
    let days = match unit {
        Unit::Unknown => return Duration::ZERO,
        Unit::Second => return Duration::from_secs(1),
        Unit::Minute => return Duration::from_secs(60),
        Unit::Hour => return Duration::from_secs(3_600),
        Unit::Day => 1,
        Unit::Week => 7,
        Unit::Month => 30,
        Unit::Year => 365,
    };
    Duration::from_secs(days * 86_400)
}
