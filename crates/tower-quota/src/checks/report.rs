//! The report of mistakes for operators.

use core::fmt;

use tower_quota_core::Name;

use super::check::Check;

/// The mistakes that a layer has found so far: their counts, and the warnings that were logged.
///
/// ```
/// use tower_quota::{MemoryStore, Policy, RateLimitLayer};
///
/// let handle = RateLimitLayer::new(MemoryStore::new(), Policy::new()).handle();
/// for (check, requests) in handle.mistakes().counts() {
///     println!("{check:?} was shown by {requests} requests");
/// }
/// assert!(handle.mistakes().is_empty());
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ChecksReport {
    counts: Vec<(Check, u64)>,
    warnings: Vec<Warning>,
}

impl ChecksReport {
    pub(super) const fn new(counts: Vec<(Check, u64)>, warnings: Vec<Warning>) -> Self {
        Self { counts, warnings }
    }

    /// Returns whether no mistake was found.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns each mistake that was found, with the number of requests that showed it.
    ///
    /// Only the first thousand requests are examined, or up to ten thousand while a mistake is not proved.
    pub fn counts(&self) -> impl Iterator<Item = (Check, u64)> {
        self.counts.iter().copied()
    }

    /// Returns how many requests showed a mistake; 0 if it was not found.
    #[must_use]
    pub fn count(&self, check: Check) -> u64 {
        self.counts()
            .find(|(found, _)| *found == check)
            .map_or(0, |(_, count)| count)
    }

    /// Returns the texts of the warnings in the order in which they were logged, at most 64.
    pub fn warnings(&self) -> impl Iterator<Item = (Check, &str)> {
        self.warnings
            .iter()
            .map(|warning| (warning.check, warning.text()))
    }
}

impl fmt::Display for ChecksReport {
    /// Writes each warning on a line of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.warnings()
            .try_for_each(|(_, text)| writeln!(f, "{text}"))
    }
}

/// A warning that was logged.
#[derive(Clone, Debug)]
pub(super) struct Warning {
    check: Check,
    /// The limit that the warning is about, if any.
    limit: Option<Name>,
    text: String,
}

impl Warning {
    pub(super) fn new(check: Check, limit: Option<Name>, mistake: String) -> Self {
        let subject = limit
            .map(|limit| format!("the limit {:?}: ", limit.as_str()))
            .unwrap_or_default();
        let text = format!(
            "{subject}{mistake}. This is logged once; `RateLimitLayer::without_check(Check::{check:?})` turns it off."
        );
        Self { check, limit, text }
    }

    /// Returns whether both warnings are about the same mistake of the same limit.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        self.check == other.check && self.limit == other.limit
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}
