//! Reads a `rate_limit`.

use core::time::Duration;

use tower_quota_core::{Algorithm, ConfigError, Quota};
use tower_quota_rules::DurationText;

use super::fields::{Fields, Reader};
use super::node::Node;
use super::rule::{OnStoreFailure, Rule, UNITS};
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

impl Reader<'_> {
    /// Returns the limit, unless a problem leaves no quota.
    pub(super) fn rate_limit(&mut self, node: &Node<'_>) -> Option<Rule> {
        let fields = self.fields(node, &FIELDS);
        let name = self.text(fields.get("name"));
        let replaces = self.replaces(&fields, name);
        let post_charge = self.flag(fields.get("post_charge"));
        let on_store_failure = match fields.get("on_store_failure") {
            Some(choice) => self.word(choice, "a choice", &CHOICES)?,
            None => self.on_store_failure,
        };
        let mut rule = if self.flag(fields.get("unlimited")) {
            self.unlimited(&fields);
            Rule {
                is_unlimited: true,
                ..Rule::default()
            }
        } else {
            self.limited(node, &fields)?
        };
        rule.shown.name = name.to_owned();
        Some(Rule {
            replaces,
            post_charge,
            on_store_failure,
            ..rule
        })
    }

    fn replaces(&mut self, fields: &Fields<'_>, own_name: &str) -> Box<[Box<str>]> {
        let mut names = Vec::new();
        for node in self.list(fields.get("replaces")) {
            let replaced = self.fields(node, &["name"]);
            let name = self.text(replaced.get("name"));
            if name.is_empty() {
                self.problem(
                    node,
                    "this names no limit to replace: write \"name\" with the name of a limit",
                );
            } else if name == own_name {
                self.problem(
                    node,
                    format_args!("the limit {name:?} replaces itself: name another limit"),
                );
            }
            names.push(name.into());
        }
        names.into()
    }

    fn unlimited(&mut self, fields: &Fields<'_>) {
        for name in ["unit", "every", "algorithm", "burst", "time_zone"] {
            let node = fields.get(name);
            let text = self.text(node);
            // Envoy Gateway writes the unit of an unlimited limit as "UNKNOWN".
            if let Some(node) = node
                && !text.eq_ignore_ascii_case("unknown")
                && !text.is_empty()
            {
                let fix = format_args!("remove {name:?} or \"unlimited\"");
                self.problem(
                    node,
                    format_args!("an unlimited limit has no {name:?}: {fix}"),
                );
            }
        }
    }

    fn limited(&mut self, node: &Node<'_>, fields: &Fields<'_>) -> Option<Rule> {
        let requests = fields.get("requests_per_unit");
        if requests.is_none() {
            self.problem(
                node,
                "the limit has no \"requests_per_unit\": add a number, or \"unlimited: true\"",
            );
        }
        let requests = requests.and_then(|node| self.number(node));
        let period = self.period(node, fields);
        let algorithm = match fields.get("algorithm") {
            Some(node) => self.word(node, "an algorithm", &ALGORITHMS)?,
            None => Algorithm::FixedWindow,
        };
        let ((unit, period), requests) = (period?, requests?);
        if requests == 0 {
            return Some(Rule::new(None, 0, unit));
        }
        match self.quota(requests, period, algorithm, fields) {
            Ok(quota) => Some(Rule::new(Some(quota), requests, unit)),
            Err(error) => {
                self.problem(node, error);
                None
            }
        }
    }

    /// Returns the unit and the length of the period.
    fn period(&mut self, node: &Node<'_>, fields: &Fields<'_>) -> Option<(Unit, Duration)> {
        let (unit, period) = match (fields.get("unit"), fields.get("every")) {
            (Some(unit), None) => {
                let (unit, seconds) = self.word(unit, "a unit", &UNITS)?;
                (unit, Duration::from_secs(seconds))
            }
            (None, Some(every)) => match self.text(Some(every)).parse::<DurationText>() {
                Ok(period) => (Unit::Unknown, period.into()),
                Err(error) => {
                    self.problem(every, error);
                    return None;
                }
            },
            (unit, every) => {
                let message = match unit {
                    Some(_) => "the limit has both \"unit\" and \"every\": remove one",
                    None => {
                        "the limit has no \"unit\": add a unit such as minute, or \"every: 90s\""
                    }
                };
                self.problem(every.unwrap_or(node), message);
                return None;
            }
        };
        if let Some(zone) = fields.get("time_zone")
            && matches!(
                unit,
                Unit::Unknown | Unit::Second | Unit::Minute | Unit::Hour
            )
        {
            self.problem(zone, "only days, weeks, months and years begin in a time zone: write such a \"unit\", or remove \"time_zone\"");
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
