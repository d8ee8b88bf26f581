//! The options of leases.

use core::time::Duration;

/// The options of a [`Leased`](crate::Leased) store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct LeaseOptions {
    pub(crate) longest: Duration,
    pub(crate) keys: usize,
}

impl LeaseOptions {
    /// The longest that a lease lasts, by default.
    pub const DEFAULT_LONGEST: Duration = Duration::from_millis(500);
    /// The most keys whose demand is observed, by default: about 5 MB.
    pub const DEFAULT_KEYS: usize = 16_384;

    /// Sets the longest that a lease lasts.
    ///
    /// Longer leases save calls. Shorter ones give up less of a burst, and lose less when an instance ends. A lease
    /// shorter than 5 ms is not taken, so zero turns leases off.
    ///
    /// All instances of one store need the same value: it decides by which quota the store counts.
    pub const fn longest(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Sets the most keys whose demand is observed. Further keys are decided by the store.
    pub const fn keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }
}

impl Default for LeaseOptions {
    fn default() -> Self {
        Self {
            longest: Self::DEFAULT_LONGEST,
            keys: Self::DEFAULT_KEYS,
        }
    }
}
