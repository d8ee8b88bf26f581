//! Reads a `rate_limit`.

use core::time::Duration;

use tower_quota_core::{Algorithm, ConfigError, Quota};
use tower_quota_rules::DurationText;

use super::fields::{Fields, Reader};
use super::rule::{Allowance, OnStoreFailure, Rule, period};
use super::yaml::Node;
use crate::messages::ratelimit::rate_limit_response::rate_limit::Unit;

const FIELDS: [&str; 11] = [
    "requests_per_unit",
    "unit",
    "unlimited",
    "name",
    "replaces",
    "algorithm",
    "burst",
    "every",
    "time_zone",
    "post_charge",
    "on_store_failure",
];

const UNITS: [(&str, Unit); 7] = [
    ("second", Unit::Second),
    ("minute", Unit::Minute),
    ("hour", Unit::Hour),
    ("day", Unit::Day),
    ("week", Unit::Week),
    ("month", Unit::Month),
    ("year", Unit::Year),
];

const ALGORITHMS: [(&str, Algorithm); 5] = [
    ("fixed_window", Algorithm::FixedWindow),
    ("sliding_window", Algorithm::SlidingWindow),
    ("sliding_log", Algorithm::SlidingLog),
    ("token_bucket", Algorithm::TokenBucket),
    ("gcra", Algorithm::Gcra),
];

const CHOICES: [(&str, OnStoreFailure); 3] = [
    ("allow", OnStoreFailure::Allow),
    ("refuse", OnStoreFailure::Refuse),
    ("error", OnStoreFailure::Error),
];

/// The unit and the length of a period.
type Period = (Unit, Duration);

impl Reader<'_> {
    /// Returns the limit, unless a problem leaves no quota.
    pub(super) fn rate_limit(&mut self, node: &Node) -> Option<Rule> {
        let fields = self.fields(node, &FIELDS);
        let name = self.text(fields.get("name"));
        let replaces = self.replaces(&fields, name);
        let post_charge = self.flag(fields.get("post_charge"));
        let choice = fields.get("on_store_failure");
        let choice = choice.and_then(|node| self.word(node, "a choice", &CHOICES));
        let mut rule = if self.flag(fields.get("unlimited")) {
            self.unlimited(&fields)
        } else {
            self.limited(node, &fields)?
        };
        rule.shown.name = name.to_owned();
        rule.replaces = replaces;
        rule.post_charge = post_charge;
        rule.on_store_failure = choice.unwrap_or(self.on_store_failure);
        Some(rule)
    }

    fn replaces(&mut self, fields: &Fields<'_>, own_name: &str) -> Box<[Box<str>]> {
        let mut names = Vec::new();
        for node in self.list(fields.get("replaces")) {
            let replaced = self.fields(node, &["name"]);
            let name = self.text(replaced.get("name"));
            if name.is_empty() {
                self.problem(
                    node.place,
                    "this names no limit to replace: write \"name\" with the name of a limit",
                );
            } else if name == own_name {
                self.problem(
                    node.place,
                    format_args!("the limit {name:?} replaces itself: name another limit"),
                );
            }
            names.push(name.into());
        }
        names.into()
    }

    fn unlimited(&mut self, fields: &Fields<'_>) -> Rule {
        for name in ["unit", "every", "algorithm", "burst", "time_zone"] {
            let Some(node) = fields.get(name) else {
                continue;
            };
            // Envoy Gateway writes the unit of an unlimited limit as "UNKNOWN".
            let text = self.text(Some(node));
            if !(text.is_empty() || text.eq_ignore_ascii_case("unknown")) {
                self.problem(
                    node.place,
                    format_args!(
                        "an unlimited limit has no {name:?}: remove {name:?} or \"unlimited\""
                    ),
                );
            }
        }
        Rule::new(Allowance::Unlimited, 0, Unit::Unknown)
    }

    fn limited(&mut self, node: &Node, fields: &Fields<'_>) -> Option<Rule> {
        let requests = match fields.get("requests_per_unit") {
            Some(requests) => self.number(requests),
            None => {
                self.problem(
                    node.place,
                    "the limit has no \"requests_per_unit\": add a number, or \"unlimited: true\"",
                );
                None
            }
        };
        let period = self.period(node, fields);
        let algorithm = match fields.get("algorithm") {
            Some(node) => self.word(node, "an algorithm", &ALGORITHMS)?,
            None => Algorithm::FixedWindow,
        };
        let ((unit, period), requests) = (period?, requests?);
        if requests == 0 {
            return Some(Rule::new(Allowance::Nothing, 0, unit));
        }
        let quota = self.quota(requests, period, algorithm, fields);
        if let Err(error) = &quota {
            self.problem(node.place, error);
        }
        Some(Rule::new(Allowance::Quota(quota.ok()?), requests, unit))
    }

    fn period(&mut self, node: &Node, fields: &Fields<'_>) -> Option<Period> {
        let (unit, period) = match (fields.get("unit"), fields.get("every")) {
            (Some(unit), None) => {
                let unit = self.word(unit, "a unit", &UNITS)?;
                (unit, period(unit))
            }
            (None, Some(every)) => {
                let span = self.text(Some(every)).parse::<DurationText>();
                if let Err(error) = &span {
                    self.problem(every.place, error);
                }
                (Unit::Unknown, span.ok()?.into())
            }
            (Some(_), Some(every)) => {
                let message = "the limit has both \"unit\" and \"every\": remove one";
                self.problem(every.place, message);
                return None;
            }
            (None, None) => {
                let message =
                    "the limit has no \"unit\": add a unit such as minute, or \"every: 90s\"";
                self.problem(node.place, message);
                return None;
            }
        };
        if let Some(zone) = fields.get("time_zone")
            && !matches!(unit, Unit::Day | Unit::Week | Unit::Month | Unit::Year)
        {
            let message = "only days, weeks, months and years begin in a time zone: write such a \"unit\", or remove \"time_zone\"";
            self.problem(zone.place, message);
            return None;
        }
        Some((unit, period))
    }

    fn quota(
        &mut self,
        requests: u32,
        period: Duration,
        algorithm: Algorithm,
        fields: &Fields<'_>,
    ) -> Result<Quota, ConfigError> {
        let mut quota = Quota::try_new(requests.into(), period)?.try_algorithm(algorithm)?;
        if let Some(burst) = fields.get("burst").and_then(|node| self.number(node)) {
            quota = quota.try_burst(burst.into())?;
        }
        match fields.get("time_zone") {
            Some(zone) => quota.calendar(self.text(Some(zone))),
            None => Ok(quota),
        }
    }
}
