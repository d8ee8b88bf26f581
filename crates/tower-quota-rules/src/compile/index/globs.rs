//! The index of patterns of keys.

use std::collections::HashMap;

use regex::bytes::{RegexSet, RegexSetBuilder};

use super::nested::Nested;
use crate::text::KeyPattern;

/// The most bytes that expressions take when they are compiled together.
pub(super) const MAX_SET_SIZE: usize = 64 << 20;

/// The fewest patterns without a literal beginning that are worth an expression of all.
const MIN_SET: usize = 16;

/// Finds all patterns that match a key: exact ones by hash, others by their literal beginning.
///
/// Patterns that begin with a star have no such beginning. They are matched one after the other if they are few, and
/// else together, by one expression.
#[derive(Debug, Default)]
pub(crate) struct Globs {
    exact: HashMap<Box<[u8]>, Vec<u32>>,
    /// The literal beginnings of patterns, with positions in `patterns`.
    prefixes: Option<Nested<Box<[u8]>>>,
    patterns: Vec<Pattern>,
    /// The positions in `patterns` of those without a literal beginning, and the expression of all.
    others: Vec<u32>,
    set: Option<RegexSet>,
}

#[derive(Debug)]
struct Pattern {
    /// The pattern, if its literal beginning is not all of it.
    rest: Option<KeyPattern>,
    number: u32,
}

impl Globs {
    /// Makes the index of these patterns.
    pub(crate) fn new<'p>(entries: impl IntoIterator<Item = (&'p KeyPattern, u32)>) -> Self {
        let (mut exact, mut prefixes) = (HashMap::<Box<[u8]>, Vec<u32>>::new(), Vec::new());
        let (mut patterns, mut others) = (Vec::new(), Vec::new());
        for (pattern, number) in entries {
            let (prefix, is_exact) = pattern.literal_prefix();
            if is_exact {
                exact.entry(prefix.into()).or_default().push(number);
                continue;
            }
            let position = u32::try_from(patterns.len()).unwrap_or(u32::MAX);
            let rest = (!pattern.is_prefix()).then(|| pattern.clone());
            if prefix.is_empty() && rest.is_some() {
                others.push(position);
            } else {
                prefixes.push((prefix.into(), position));
            }
            patterns.push(Pattern { rest, number });
        }
        let expressions = || {
            others
                .iter()
                .filter_map(|other| patterns.get(index(*other))?.rest.as_ref().map(expression))
        };
        let set = (others.len() >= MIN_SET)
            .then(|| {
                RegexSetBuilder::new(expressions())
                    .unicode(false)
                    .size_limit(MAX_SET_SIZE)
                    .build()
                    .ok()
            })
            .flatten();
        let prefixes = (!prefixes.is_empty()).then(|| Nested::new(prefixes));
        Self {
            exact,
            prefixes,
            patterns,
            others,
            set,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.patterns.is_empty()
    }

    /// Visits the numbers of all patterns that match a key.
    pub(crate) fn find(&self, key: &[u8], mut visit: impl FnMut(u32)) {
        if let Some(numbers) = self.exact.get(key) {
            numbers.iter().for_each(|number| visit(*number));
        }
        let mut examine = |position: u32| {
            let Some(pattern) = self.patterns.get(index(position)) else {
                return;
            };
            if pattern.rest.as_ref().is_none_or(|rest| rest.matches(key)) {
                visit(pattern.number);
            }
        };
        if let Some(prefixes) = &self.prefixes {
            prefixes.find(
                |prefix| **prefix > *key,
                |prefix| key.starts_with(prefix),
                &mut examine,
            );
        }
        match &self.set {
            // A pattern knows characters better than the expression, so it has the last word.
            Some(set) => set
                .matches(key)
                .iter()
                .filter_map(|at| self.others.get(at))
                .for_each(|at| examine(*at)),
            None => self.others.iter().for_each(|at| examine(*at)),
        }
    }
}

fn index(position: u32) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

/// Returns an expression that matches at least the keys of a pattern.
fn expression(pattern: &KeyPattern) -> String {
    let mut text = String::from("(?s)^");
    let mut characters = pattern.as_str().chars();
    while let Some(character) = characters.next() {
        match character {
            '*' => text.push_str(".*"),
            // A character has up to four bytes.
            '?' => text.push_str(".{1,4}"),
            '\\' => text.extend(
                characters
                    .next()
                    .map(|escaped| regex::escape(escaped.encode_utf8(&mut [0; 4]))),
            ),
            literal => text.push_str(&regex::escape(literal.encode_utf8(&mut [0; 4]))),
        }
    }
    text.push('$');
    text
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};

    use super::Globs;
    use crate::text::KeyPattern;

    fn patterns() -> impl Strategy<Value = Vec<KeyPattern>> {
        vec(
            "[ab*?é]{1,5}".prop_map(|text| text.parse().expect("valid")),
            0..40,
        )
    }

    proptest! {
        #[test]
        fn index_finds_what_matches(patterns in patterns(), key in vec(any::<u8>(), 0..3), text in "[abé]{0,6}") {
            let globs = Globs::new(patterns.iter().zip(0..));
            for key in [&key[..], text.as_bytes()] {
                let mut found = Vec::new();
                globs.find(key, |number| found.push(number));
                found.sort_unstable();
                let matching = patterns.iter().zip(0..).filter(|(pattern, _)| pattern.matches(key));
                prop_assert_eq!(&found, &matching.map(|(_, number)| number).collect::<Vec<u32>>());
            }
        }
    }
}
