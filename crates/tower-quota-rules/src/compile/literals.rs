//! Finds the literal segments of paths for the index.

use crate::document::PathMatch;
use crate::text::PathRegex;

pub(super) fn segments_of_path(path: &PathMatch) -> Vec<Option<String>> {
    match path {
        PathMatch::Pattern(pattern) => segments_of_pattern(pattern.as_str()),
        PathMatch::Regex { regex } => segments_of_regex(regex),
    }
}

/// Returns the segments of a gRPC service or method, which begin the path.
pub(super) fn segments_of_call(name: &str) -> Vec<Option<String>> {
    name.split('/').map(|part| Some(part.into())).collect()
}

fn segments_of_pattern(pattern: &str) -> Vec<Option<String>> {
    let literal = |segment: &str| {
        let text = segment.replace("{{", "\0").replace("}}", "\u{1}");
        let has_parameter = text.contains(['{', '}']);
        (!has_parameter).then(|| text.replace('\0', "{").replace('\u{1}', "}"))
    };
    pattern.split('/').skip(1).map(literal).collect()
}

/// Returns the complete segments that all matches of an expression begin with.
fn segments_of_regex(expression: &PathRegex) -> Vec<Option<String>> {
    let beginning = expression.beginning();
    let segments = beginning.split('/').skip(1);
    let mut segments: Vec<Option<String>> = segments.map(|text| Some(text.into())).collect();
    // Drop the last segment, which may continue.
    segments.pop();
    segments
}

#[cfg(test)]
mod tests {
    use super::{segments_of_pattern, segments_of_regex};

    #[test]
    fn literal_segments_are_found() {
        let literal = |text: &str| Some(text.to_owned());
        for (pattern, segments) in [
            ("/", vec![literal("")]),
            ("/v1/{id}/x", vec![literal("v1"), None, literal("x")]),
            ("/a{{b}}/v{n}", vec![literal("a{b}"), None]),
            ("/{*rest}", vec![None]),
        ] {
            assert_eq!(segments_of_pattern(pattern), segments, "{pattern}");
        }
        for (expression, segments) in [
            ("^/v1/users", vec![literal("v1")]),
            ("^/v[12]/users", vec![]),
            ("/v1/users", vec![]),
            ("^/v1/users$|^/v1/x", vec![literal("v1")]),
            ("^/v1/users$|/v1/x", vec![]),
            ("(?i)^/v1/", vec![]),
            ("^/é/x", vec![literal("é")]),
        ] {
            let expression = expression.parse().expect("valid");
            assert_eq!(segments_of_regex(&expression), segments, "{expression}");
        }
    }
}
