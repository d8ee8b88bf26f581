//! Comparison of conditions: one set of them holds wherever another does.

use crate::document::{Many, Match, PathMatch};

/// Returns whether every request that matches `narrow` matches `wide` too. `false` may be wrong.
pub(super) fn covers(wide: &Match, narrow: &Match) -> bool {
    if wide.is_empty() || wide == narrow {
        return true;
    }
    contains(&wide.method, &narrow.method, PartialEq::eq)
        && contains(&wide.host, &narrow.host, |wide, narrow| {
            wide == narrow
                || wide
                    .as_str()
                    .strip_prefix('*')
                    .is_some_and(|domain| narrow.as_str().ends_with(domain))
        })
        && contains(&wide.path, &narrow.path, path_covers)
        && contains(&wide.route, &narrow.route, PartialEq::eq)
        && contains(&wide.key, &narrow.key, crate::text::KeyPattern::covers)
        && contains(&wide.network, &narrow.network, PartialEq::eq)
        && contains(&wide.grpc_service, &narrow.grpc_service, PartialEq::eq)
        && contains(&wide.grpc_method, &narrow.grpc_method, PartialEq::eq)
        && contains(&wide.code, &narrow.code, PartialEq::eq)
        && (!wide.cors_preflight || narrow.cors_preflight)
        && (wide.header.is_empty() || wide.header == narrow.header)
        && (wide.not.is_none() || wide.not == narrow.not)
}

/// Returns whether each value of the narrower condition is covered by one of the wider.
fn contains<T>(
    wide: &Option<Many<T>>,
    narrow: &Option<Many<T>>,
    covers: impl Fn(&T, &T) -> bool,
) -> bool {
    match (wide, narrow) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wide), Some(narrow)) => narrow
            .0
            .iter()
            .all(|narrow| wide.0.iter().any(|wide| covers(wide, narrow))),
    }
}

fn path_covers(wide: &PathMatch, narrow: &PathMatch) -> bool {
    match (wide, narrow) {
        (PathMatch::Pattern(wide), PathMatch::Pattern(narrow)) => {
            let rest = wide.as_str().rsplit_once("/{*");
            let is_rest = rest.is_some_and(|(before, _)| {
                // The rest must not be empty. Before it there must be no parameter, whose name could differ.
                !before.contains('{')
                    && narrow
                        .as_str()
                        .strip_prefix(before)
                        .is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
            });
            wide == narrow || is_rest
        }
        (PathMatch::Regex(wide), PathMatch::Regex(narrow)) => wide == narrow,
        _ => false,
    }
}
