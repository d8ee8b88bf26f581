use core::fmt;

use super::check::Check;

/// The mistakes in your configuration so far.
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
    pub(super) off: Vec<Check>,
    pub(super) counts: Vec<(Check, u64)>,
    pub(super) warnings: Vec<(Check, String)>,
}

impl ChecksReport {
    /// Returns whether the layer found no mistake.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the mistakes, with the number of requests that showed them.
    ///
    /// The layer examines 1,000 requests, or up to 10,000 while a mistake is suspected or a limit has met no request.
    pub fn counts(&self) -> impl Iterator<Item = (Check, u64)> {
        self.counts.iter().copied()
    }

    /// Returns the number of requests that showed a mistake.
    #[must_use]
    pub fn count(&self, check: Check) -> u64 {
        self.counts()
            .find(|(found, _)| *found == check)
            .map_or(0, |(_, count)| count)
    }

    /// Returns the texts of the logged warnings, at most 64.
    pub fn warnings(&self) -> impl Iterator<Item = (Check, &str)> {
        self.warnings
            .iter()
            .map(|(check, text)| (*check, text.as_str()))
    }
}

impl fmt::Display for ChecksReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.warnings()
            .try_for_each(|(_, text)| writeln!(f, "{text}"))
    }
}
