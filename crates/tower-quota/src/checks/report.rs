//! The report of mistakes for operators.

use core::fmt;

use super::check::Check;

/// The mistakes that a layer has found so far, with their counts and the logged warnings.
///
/// ```
/// use tower_quota::{MemoryStore, Policy, RateLimitLayer};
///
/// let handle = RateLimitLayer::new(MemoryStore::new(), Policy::new()).handle();
/// for (check, requests) in handle.mistakes().counts() {
///     println!("{requests} requests showed {check:?}");
/// }
/// assert!(handle.mistakes().is_empty());
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ChecksReport {
    pub(super) counts: Vec<(Check, u64)>,
    pub(super) warnings: Vec<(Check, String)>,
}

impl ChecksReport {
    /// Returns whether the layer found no mistake.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns each mistake that was found, with the number of requests that showed it.
    ///
    /// The layer examines its first thousand requests, or up to ten thousand while a mistake is partly proved.
    pub fn counts(&self) -> impl Iterator<Item = (Check, u64)> {
        self.counts.iter().copied()
    }

    /// Returns the number of requests that showed a mistake, or 0 if the layer did not find it.
    #[must_use]
    pub fn count(&self, check: Check) -> u64 {
        self.counts()
            .find(|(found, _)| *found == check)
            .map_or(0, |(_, count)| count)
    }

    /// Returns the texts of the warnings in the order of the log, at most 64.
    pub fn warnings(&self) -> impl Iterator<Item = (Check, &str)> {
        self.warnings
            .iter()
            .map(|(check, text)| (*check, text.as_str()))
    }
}

impl fmt::Display for ChecksReport {
    /// Writes each warning on its own line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.warnings()
            .try_for_each(|(_, text)| writeln!(f, "{text}"))
    }
}
