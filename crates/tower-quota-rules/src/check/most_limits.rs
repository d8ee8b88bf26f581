//! Checks how many limits may apply to one request.

use std::collections::{HashMap, HashSet};

use tower_quota::store::Charge;
use tower_quota::{ConfigError, Name};

use super::Checker;
use crate::compile::{segments_of_call, segments_of_path};
use crate::document::{LimitRule, Many, Match, MissingRule, PathMatch};
use crate::problem::DocumentPlace;

/// The compared parts of a request. Paths with the same first parts count together.
const MOST_PARTS: usize = 32;

/// Limits that apply together, and a condition under which they apply.
struct Candidate {
    /// The position of a limit, or `None` for the limits of a route.
    limit: Option<usize>,
    limits: usize,
    /// The exact host and route of matching requests, then the segments of their paths. An absent part may be any.
    parts: Vec<Option<String>>,
}

impl Checker<'_> {
    pub(super) fn most_limits(&mut self) {
        let document = self.document;
        let is_conditional = |rule: &LimitRule| {
            rule.when.is_some() || rule.unless.is_some() || rule.missing == Some(MissingRule::Skip)
        };
        let mut always = enforced(&document.limits).filter(|rule| !is_conditional(rule));
        if let Some(rule) = always.nth(Charge::MOST) {
            let name = Name::from(&rule.name);
            self.error(
                DocumentPlace::of("limits"),
                ConfigError::TooManyLimits(name),
            );
        }
        let mut candidates = Vec::new();
        for (position, rule) in enforced(&document.limits).enumerate() {
            let conditions = match &rule.when {
                Some(when) => when.0.iter().flat_map(parts).collect(),
                None => vec![Vec::new()],
            };
            candidates.extend(conditions.into_iter().map(|parts| Candidate {
                limit: Some(position),
                limits: 1,
                parts,
            }));
        }
        for route in &document.routes {
            let limits = enforced(&route.limits).count();
            let conditions = parts(&route.matching).into_iter();
            candidates.extend(conditions.map(|parts| Candidate {
                limit: None,
                limits,
                parts,
            }));
        }
        let together = most(candidates.iter().collect(), 0);
        if together > Charge::MOST {
            let text = format_args!(
                "{together} limits may apply to a request, and a request with more than {} is refused with status 500",
                Charge::MOST
            );
            self.warning(DocumentPlace::of("limits"), text);
        }
    }
}

fn enforced(rules: &[LimitRule]) -> impl Iterator<Item = &LimitRule> {
    rules.iter().filter(|rule| !rule.shadow)
}

/// Returns the parts of each alternative of a condition.
fn parts(matching: &Match) -> Vec<Vec<Option<String>>> {
    let hosts = only(&matching.host).filter(|host| !host.as_str().starts_with("*."));
    let host = hosts.map(|host| host.as_str().to_ascii_lowercase());
    let route = only(&matching.route).map(|route| route.to_string());
    let mut paths: Vec<_> = Many::of(&matching.path).iter().map(of_path).collect();
    if paths.is_empty() {
        let methods = Many::of(&matching.grpc_method).iter();
        paths.extend(methods.map(|name| segments_of_call(name.as_str())));
    }
    if paths.is_empty() {
        let services = Many::of(&matching.grpc_service).iter();
        paths.extend(services.map(|name| segments_of_call(name.as_str())));
    }
    if paths.is_empty() {
        paths.push(Vec::new());
    }
    let of_request = [host, route];
    let alternatives = paths.into_iter();
    alternatives
        .map(|path| of_request.iter().cloned().chain(path).collect())
        .collect()
}

fn only<T>(values: &Option<Many<T>>) -> Option<&T> {
    match Many::of(values) {
        [only] => Some(only),
        _ => None,
    }
}

fn of_path(path: &PathMatch) -> Vec<Option<String>> {
    let mut segments = segments_of_path(path);
    if let PathMatch::Pattern(pattern) = path
        && !pattern.as_str().contains("{*")
    {
        // The end of a path. No segment contains a slash.
        segments.push(Some("/".into()));
    }
    segments
}

/// Returns an upper bound of the limits that apply to one request.
///
/// Routes that differ in other conditions than these parts count as exclusive.
fn most(candidates: Vec<&Candidate>, part: usize) -> usize {
    let mut groups: HashMap<&str, Vec<&Candidate>> = HashMap::new();
    let (mut any, mut always, mut of_route) = (Vec::new(), HashSet::new(), 0);
    for candidate in candidates {
        match (candidate.parts.get(part), candidate.limit) {
            (Some(Some(text)), _) if part < MOST_PARTS => {
                groups.entry(text).or_default().push(candidate);
            }
            (Some(None), _) if part < MOST_PARTS => any.push(candidate),
            (_, Some(position)) => {
                always.insert(position);
            }
            (_, None) => of_route = of_route.max(candidate.limits),
        }
    }
    let rest = |mut group: Vec<&Candidate>| {
        group.retain(|candidate| candidate.limit.is_none_or(|limit| !always.contains(&limit)));
        if group.is_empty() {
            0
        } else {
            most(group, part + 1)
        }
    };
    let of_groups = groups.into_values().map(rest).max();
    always.len() + of_route + rest(any) + of_groups.unwrap_or(0)
}
