//! Finds conditions that match no request, and checks conditions from your code.

use super::{Checker, all_limits};
use crate::document::{KeyRule, Many, Match, PathMatch};
use crate::problem::DocumentPlace;
use crate::text::{KeyText, PathRegex};

impl<'d> Checker<'d> {
    pub(super) fn matches(&mut self) {
        let document = self.document;
        for limit in all_limits(document) {
            let place = limit.place();
            self.each_of(&place.field("when"), Many::of(&limit.rule.when));
            self.each_of(&place.field("unless"), Many::of(&limit.rule.unless));
        }
        for (index, rule) in document.assign.iter().enumerate() {
            let place = DocumentPlace::of("assign").index(index).field("when");
            self.each_of(&place, Many::of(&rule.when));
        }
        for (index, route) in document.routes.iter().enumerate() {
            let place = DocumentPlace::of("routes").index(index);
            let matching = place.field("match");
            self.matching(&matching, &route.matching);
            if route.matching.is_empty() {
                self.warning(
                    matching,
                    "this route matches every request: write its limits under \"limits\"",
                );
            }
            if route.limits.is_empty() {
                self.warning(
                    place.field("limits"),
                    "this route has no limits: add one, or remove the route",
                );
            }
        }
        for (field, list) in document.lists() {
            self.each_of(&DocumentPlace::of(field), list);
        }
    }

    fn each_of(&mut self, place: &DocumentPlace, matches: &'d [Match]) {
        for (index, matching) in matches.iter().enumerate() {
            self.matching(&place.index(index), matching);
        }
    }

    fn matching(&mut self, place: &DocumentPlace, matching: &'d Match) {
        if matching.key.is_some() {
            self.has_patterns(place);
        }
        if matching.route.is_some() && !cfg!(feature = "axum") {
            let text = "matched routes are axum's: build the service with the feature `axum`, or use \"path\"";
            self.error(place.field("route"), text);
        }
        for (index, name) in Many::of(&matching.code).iter().enumerate() {
            let place = place.field("code").index(index);
            self.part(place, "condition", name, &self.parts.conditions);
        }
        for name in matching.claim.keys() {
            let place = place.field("claim").field(name.as_str());
            self.part(place, "claim", name, &self.parts.claims);
        }
        for (index, path) in Many::of(&matching.path).iter().enumerate() {
            self.path(|| place.field("path").index(index), path);
        }
        self.each_of(&place.field("not"), Many::of(&matching.not));
    }

    /// Refuses patterns of a default key that has no text to compare.
    pub(super) fn has_patterns(&mut self, place: &DocumentPlace) {
        let text = match self.document.defaults.key() {
            key if has_text(key) => return,
            KeyRule::One(KeyText::ClientIp { .. }) => {
                "the key of \"defaults\" is the address, so that this matches no request: write \"network\" instead"
            }
            _ => {
                "the key of \"defaults\" has no text, so that this matches no request: choose another key there"
            }
        };
        self.error(place.field("key"), text);
    }

    fn path(&mut self, place: impl Fn() -> DocumentPlace, path: &PathMatch) {
        match path {
            PathMatch::Pattern(pattern) if pattern.as_str().contains('?') => {
                let pattern = pattern.as_str();
                let text = format_args!(
                    "a path has no query, so that {pattern:?} matches no request: leave out what follows the question mark"
                );
                self.error(place(), text);
            }
            PathMatch::Regex { regex } if matches_no_path(regex) => {
                let regex = regex.as_str();
                let text = format_args!(
                    "{regex:?} matches no path, since each begins with a slash: begin it with \"^/\""
                );
                self.error(place().field("regex"), text);
            }
            _ => {}
        }
    }
}

fn has_text(key: &KeyRule) -> bool {
    match key {
        KeyRule::One(text) => !matches!(text, KeyText::None | KeyText::ClientIp { .. }),
        KeyRule::First(keys) => keys.iter().any(has_text),
        KeyRule::All { .. } => false,
    }
}

/// Returns whether all matches of an expression begin with another character than a slash.
fn matches_no_path(expression: &PathRegex) -> bool {
    let beginning = expression.beginning();
    !beginning.is_empty() && !beginning.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::matches_no_path;

    #[test]
    fn expression_without_slash_matches_no_path() {
        for (expression, nothing) in [
            ("^v1/", true),
            ("^(?:v1|v2)/", true),
            ("^/v1/", false),
            ("v1/", false),
            ("^.*v1", false),
            ("^(/a|b)", false),
            ("^[/a]", false),
            ("", false),
        ] {
            let regex = expression.parse().expect("valid");
            assert_eq!(matches_no_path(&regex), nothing, "{expression}");
        }
    }
}
