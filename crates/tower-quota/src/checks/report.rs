use core::fmt;
use std::time::Instant;

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
    pub(super) counts: Vec<Shown>,
    pub(super) warnings: Vec<(Check, String)>,
    pub(super) since: Option<Instant>,
}

/// How often and when requests showed a mistake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    pub(super) check: Check,
    pub(super) requests: u64,
    pub(super) last: Instant,
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
        self.counts
            .iter()
            .map(|shown| (shown.check, shown.requests))
    }

    /// Returns the number of requests that showed a mistake.
    #[must_use]
    pub fn count(&self, check: Check) -> u64 {
        self.counts()
            .find(|(found, _)| *found == check)
            .map_or(0, |(_, count)| count)
    }

    /// Returns when a request last showed the mistake, if a request showed it.
    ///
    /// Most checks examine the first requests of a policy only, so a mistake that lasts may have an early time.
    #[must_use]
    pub fn last_seen(&self, check: Check) -> Option<Instant> {
        let shown = self.counts.iter().find(|shown| shown.check == check);
        shown.map(|shown| shown.last)
    }

    /// Returns the warnings whose mistake a request showed since the policy came into force, with the time of the last
    /// such request.
    ///
    /// The layer examines the first requests of each policy, so a mistake that lasts is back soon after a change.
    pub fn current(&self) -> impl Iterator<Item = (Check, &str, Instant)> {
        let warnings = self.warnings();
        warnings.filter_map(|(check, text)| {
            let last = self.last_seen(check)?;
            let is_past = self.since.is_some_and(|since| last < since);
            (!is_past).then_some((check, text, last))
        })
    }

    pub(crate) fn under_policy_since(self, since: Instant) -> Self {
        Self {
            since: Some(since),
            ..self
        }
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
