//! The index of path patterns and expressions.

use core::fmt;

use regex::{RegexSet, RegexSetBuilder};
use tower_quota::RequestHead;
use tower_quota::when::{self, Condition};

use super::globs::MAX_SET_SIZE;
use super::nested::Nested;
use super::trie::{Segment, Trie, TrieBuilder};
use crate::document::PathMatch;

/// Finds all path patterns and expressions that match a request: a trie of segments, and one expression of all.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    trie: Trie,
    /// Patterns that are no list of segments, `/v{n}`, by their literal beginning.
    others: Option<Nested<Box<[u8]>>>,
    other_patterns: Vec<Other>,
    expressions: Option<RegexSet>,
    /// The numbers of the expressions.
    numbers: Vec<u32>,
}

struct Other {
    matches: Box<dyn Condition>,
    number: u32,
}

impl Paths {
    /// Makes the index of these patterns and expressions.
    ///
    /// # Errors
    /// An error when the expressions take too much memory together.
    pub(crate) fn new<'p>(
        entries: impl IntoIterator<Item = (&'p PathMatch, u32)>,
    ) -> Result<Self, regex::Error> {
        let (mut paths, mut trie) = (Self::default(), TrieBuilder::new());
        let (mut others, mut expressions) = (Vec::new(), Vec::new());
        for (path, number) in entries {
            match path {
                PathMatch::Regex(regex) => {
                    expressions.push(regex.as_str());
                    paths.numbers.push(number);
                }
                PathMatch::Pattern(pattern) => match segments(pattern.as_str()) {
                    Some(segments) => trie.insert(segments, number),
                    None => {
                        let Ok(matches) = when::try_path(pattern.as_str()) else {
                            continue;
                        };
                        let prefix = pattern
                            .as_str()
                            .split(['{', '}'])
                            .next()
                            .unwrap_or_default();
                        let position =
                            u32::try_from(paths.other_patterns.len()).unwrap_or(u32::MAX);
                        others.push((prefix.as_bytes().into(), position));
                        paths.other_patterns.push(Other { matches, number });
                    }
                },
            }
        }
        paths.trie = trie.build();
        paths.others = (!others.is_empty()).then(|| Nested::new(others));
        if !expressions.is_empty() {
            paths.expressions = Some(
                RegexSetBuilder::new(expressions)
                    .size_limit(MAX_SET_SIZE)
                    .build()?,
            );
        }
        Ok(paths)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.trie.is_empty() && self.others.is_none() && self.numbers.is_empty()
    }

    /// Visits the numbers of all patterns and expressions that match a request.
    pub(crate) fn find(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(u32)) {
        if head.holds_in_doubt() {
            head.path_matches(|path| {
                self.find_path(head, path, visit);
                false
            });
            return;
        }
        // A match that exempts a request must hold for each of its paths.
        let mut common: Option<Vec<u32>> = None;
        head.path_matches(|path| {
            let mut found = Vec::new();
            self.find_path(head, path, &mut |number| found.push(number));
            if let Some(earlier) = &common {
                found.retain(|number| earlier.contains(number));
            }
            common = Some(found);
            true
        });
        common.into_iter().flatten().for_each(visit);
    }

    fn find_path(&self, head: &RequestHead<'_>, path: &str, visit: &mut dyn FnMut(u32)) {
        self.trie.find(path, visit);
        if let Some(others) = &self.others {
            let examine = |position| {
                let other = usize::try_from(position)
                    .ok()
                    .and_then(|position| self.other_patterns.get(position));
                if let Some(other) = other.filter(|other| (other.matches)(head)) {
                    visit(other.number);
                }
            };
            let path = path.as_bytes();
            others.find(
                |prefix| **prefix > *path,
                |prefix| path.starts_with(prefix),
                examine,
            );
        }
        if let Some(expressions) = &self.expressions {
            let numbers = expressions.matches(path);
            numbers
                .iter()
                .filter_map(|at| self.numbers.get(at))
                .for_each(|number| visit(*number));
        }
    }
}

/// Returns the segments of a pattern, if each is a literal, a parameter or the rest.
fn segments(pattern: &str) -> Option<Vec<Segment>> {
    pattern.strip_prefix('/')?.split('/').map(segment).collect()
}

fn segment(text: &str) -> Option<Segment> {
    let literal = text.replace("{{", "\0").replace("}}", "\u{1}");
    if !literal.contains(['{', '}']) {
        return Some(Segment::Literal(
            literal.replace('\0', "{").replace('\u{1}', "}"),
        ));
    }
    let name = literal.strip_prefix('{')?.strip_suffix('}')?;
    if name.contains(['{', '}', '\0', '\u{1}']) {
        return None;
    }
    Some(if name.starts_with('*') {
        Segment::Rest
    } else {
        Segment::Parameter
    })
}

impl fmt::Debug for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Other({})", self.number)
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert_eq, proptest};
    use tower_quota::{RequestHead, when};

    use super::Paths;
    use crate::document::PathMatch;
    use crate::text::PathPattern;

    proptest! {
        #[test]
        fn index_finds_what_routers_match(
            // Enough literals for nodes that are large.
            patterns in vec("(/([a-l]|a|b|v\\{n\\}|\\{p\\}|\\{\\{a|)){1,4}(/\\{\\*rest\\})?", 1..60),
            path in "(/([a-m]|a|b|v1|v|%7Ba|)){1,5}",
        ) {
            let valid: Vec<PathPattern> = patterns.iter().filter_map(|pattern| pattern.parse().ok()).collect();
            let matches: Vec<PathMatch> = valid.iter().cloned().map(PathMatch::Pattern).collect();
            let paths = Paths::new(matches.iter().zip(0..)).expect("no expression");
            let request = Request::get(path.as_str()).body(()).expect("valid");
            let head = RequestHead::of(&request);
            let mut found = Vec::new();
            paths.find(&head, &mut |number| found.push(number));
            found.sort_unstable();
            let expected = valid.iter().zip(0..).filter(|(pattern, _)| when::path(pattern.as_str())(&head));
            prop_assert_eq!(found, expected.map(|(_, number)| number).collect::<Vec<u32>>(), "{:?} {}", valid, path);
        }
    }
}
