//! Statistics of a store.

/// Statistics of a [`MemoryStore`](crate::MemoryStore), for metrics and dashboards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// The number of entries, including entries that are full again.
    pub entries: usize,
    /// The capacity, without the entry of [`Key::EVERYONE`](crate::Key::EVERYONE).
    pub capacity: usize,
    /// The number of entries that the store has evicted before they were full.
    pub evicted: u64,
    /// The number of evicted entries with a spent limit.
    pub evicted_limited: u64,
    /// The number of look-ups that found a limit still spent when an evicted client returned.
    pub filter_hits: u64,
    /// The number of limits with a quota in use, counted once per shard.
    pub definitions: usize,
    /// The bytes of the rows, their entries, and the memory of evicted entries.
    pub bytes: usize,
}
