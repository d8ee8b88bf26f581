//! Statistics of a store.

/// Statistics of a [`MemoryStore`](crate::MemoryStore), for metrics and dashboards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Entries at present, some of which may be full again.
    pub entries: usize,
    /// The most entries that the store remembers. The one of [`Key::EVERYONE`](crate::Key::EVERYONE) is not counted.
    pub capacity: usize,
    /// Entries that were evicted before they were full, since the store was made.
    pub evicted: u64,
    /// Evicted entries of which a limit was spent.
    pub evicted_limited: u64,
    /// Hits of the evicted filter: a limit of an evicted client was still spent when the client returned.
    pub filter_hits: u64,
    /// Definitions of limits (a name and a quota) that the tables know, each table for itself.
    pub definitions: usize,
    /// Bytes of the tables' rows and evicted filters, without sliding logs and entries of many limits.
    pub bytes: usize,
}
