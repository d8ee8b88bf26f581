//! Statistics of a store.

/// Statistics of a [`MemoryStore`](crate::MemoryStore), for metrics and dashboards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Entries, including entries that are full again.
    pub entries: usize,
    /// The capacity, without the entry of [`Key::EVERYONE`](crate::Key::EVERYONE).
    pub capacity: usize,
    /// Entries that the store has evicted before they were full.
    pub evicted: u64,
    /// Evicted entries with a spent limit.
    pub evicted_limited: u64,
    /// Look-ups of limits that were still spent when an evicted client returned.
    pub filter_hits: u64,
    /// Limits with a quota that the shards know. Each shard counts its own.
    pub definitions: usize,
    /// Bytes of the rows, their entries, and the memory of evicted entries.
    pub bytes: usize,
}
