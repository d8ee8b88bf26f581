//! Statistics of a refusal cache.

/// Counters of a [`RefusalCache`](crate::RefusalCache) and all clones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusalStats {
    /// Requests that the cache has refused.
    pub answered: u64,
    /// Entries that the cache has remembered. Each renewal counts again.
    pub remembered: u64,
    /// Entries that a full cache has dropped while the limits were in use.
    pub evicted: u64,
}
