use core::fmt;

use tower_quota_core::Name;

use super::custom::{CLOSURE_MARK, EXTENSION_MARK};
use super::inspect::missing_scope;
use crate::head::RequestHead;
use crate::limit::Limit;

/// The part of a key that a request lacks, or that has conflicting values.
///
/// Prints the words for clients, which are those of [`Limit::describe_key`](crate::Limit::describe_key) if you set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingPart {
    scope: Name,
    words: Option<Name>,
    is_conflict: bool,
}

impl MissingPart {
    pub(crate) fn of(limit: &Limit, is_conflict: bool, head: &RequestHead<'_>) -> Self {
        let scope = missing_scope(&*limit.extractor, head);
        Self::new(scope, limit.key_words, is_conflict)
    }

    pub(crate) const fn new(scope: Name, words: Option<Name>, is_conflict: bool) -> Self {
        Self {
            scope,
            words,
            is_conflict,
        }
    }

    /// Returns the [scope](super::KeyExtractor::scope) of the part.
    #[must_use]
    pub const fn scope(&self) -> Name {
        self.scope
    }

    /// Returns whether the request has several values of the part, instead of no value.
    #[must_use]
    pub const fn is_conflict(&self) -> bool {
        self.is_conflict
    }
}

impl fmt::Display for MissingPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(words) = self.words {
            return f.write_str(words.as_str());
        }
        let scope = self.scope.as_str();
        // Only combinations have parentheses. All parts of a choice are missing.
        let choice = scope.strip_prefix('(');
        let Some(choice) = choice.and_then(|rest| rest.strip_suffix(')')) else {
            return f.write_str(readable(scope));
        };
        for (position, part) in choice.split(" or ").enumerate() {
            if position > 0 {
                f.write_str(" or ")?;
            }
            f.write_str(readable(part.trim_matches(['(', ')'])))?;
        }
        Ok(())
    }
}

fn readable(scope: &str) -> &str {
    // Clients do not know how the service reads the key.
    let marks = [CLOSURE_MARK, EXTENSION_MARK];
    let name = marks.iter().find_map(|mark| scope.strip_prefix(mark));
    name.unwrap_or(scope)
}
