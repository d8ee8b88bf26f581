//! Statistics of a refusal cache.

/// Counters of a [`RefusalCache`](crate::RefusalCache) and all clones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusalStats {
    /// The number of requests that the cache has refused.
    pub answered: u64,
    /// The number of entries that the cache has remembered. Each renewal counts again.
    pub remembered: u64,
    /// The number of entries that a full cache has dropped while the limits were in use.
    pub evicted: u64,
}
