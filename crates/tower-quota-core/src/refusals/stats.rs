//! Figures of a refusal cache.

/// The counts of a [`RefusalCache`](crate::RefusalCache) and its clones, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusalStats {
    /// Requests that were refused from memory, without a call.
    pub answered: u64,
    /// Entries that came with refusals. Each renewal counts again.
    pub remembered: u64,
    /// Entries that gave way to others while their limits were in use.
    pub evicted: u64,
}
