//! Paths and expressions that no request has.

use regex_syntax::hir::Look;
use regex_syntax::hir::literal::Extractor;

use super::Checker;
use crate::document::{Match, PathMatch};
use crate::problem::Place;

impl Checker<'_> {
    pub(super) fn paths(&mut self) {
        let document = self.document;
        for (index, route) in document.routes.iter().enumerate() {
            let place = Place::of("routes").index(index);
            self.each_path(&place.field("match"), &route.matching);
        }
        for limit in super::all_limits(document) {
            for (field, matches) in [("when", &limit.rule.when), ("unless", &limit.rule.unless)] {
                for (index, matching) in matches.iter().flat_map(|matches| &matches.0).enumerate() {
                    self.each_path(&limit.place().field(field).index(index), matching);
                }
            }
        }
        for (field, list) in [
            ("skip", &document.skip),
            ("allow", &document.allow),
            ("block", &document.block),
        ] {
            for (index, matching) in list.iter().enumerate() {
                self.each_path(&Place::of(field).index(index), matching);
            }
        }
    }

    fn each_path(&mut self, place: &Place, matching: &Match) {
        for (index, path) in matching.path.iter().flat_map(|paths| &paths.0).enumerate() {
            let place = || place.field("path").index(index);
            match path {
                PathMatch::Pattern(pattern) if pattern.as_str().contains('?') => {
                    let pattern = pattern.as_str();
                    let text = format_args!(
                        "a path has no query, so that {pattern:?} matches no request: leave out what follows the question mark"
                    );
                    self.error(place(), text);
                }
                PathMatch::Pattern(_) => {}
                PathMatch::Regex(regex) => {
                    if matches_no_path(regex.as_str()) {
                        let regex = regex.as_str();
                        let text = format_args!(
                            "{regex:?} matches no path, since each begins with a slash: begin it with \"^/\""
                        );
                        self.error(place().field("regex"), text);
                    }
                }
            }
        }
        for (index, matching) in matching
            .not
            .iter()
            .flat_map(|matches| &matches.0)
            .enumerate()
        {
            self.each_path(&place.field("not").index(index), matching);
        }
    }
}

/// Returns whether an expression is anchored, and begins with another character than a slash.
fn matches_no_path(expression: &str) -> bool {
    let Ok(hir) = regex_syntax::parse(expression) else {
        return false;
    };
    if !hir.properties().look_set_prefix().contains(Look::Start) {
        return false;
    }
    let prefixes = Extractor::new().extract(&hir);
    let starts_elsewhere = |bytes: &[u8]| bytes.first().is_some_and(|byte| *byte != b'/');
    prefixes.literals().is_some_and(|literals| {
        literals
            .iter()
            .all(|literal| starts_elsewhere(literal.as_bytes()))
    })
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
            assert_eq!(matches_no_path(expression), nothing, "{expression}");
        }
    }
}
