//! The numbers that a store reports about itself.

/// Numbers of a [`MemoryStore`](crate::MemoryStore), for metrics and dashboards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Entries at present, some of which may be full again.
    pub entries: usize,
    /// The most entries there can be, not counting the one for all requests together.
    pub capacity: usize,
    /// Entries that were evicted before they were full, since the store was made.
    pub evicted: u64,
    /// Those of them that had spent a limit.
    pub evicted_limited: u64,
    /// Definitions of limits (a name and a quota) that the tables know, each table for itself.
    pub definitions: usize,
    /// Bytes of the tables' rows and evicted filters. Sliding logs and entries with many limits come on top.
    pub bytes: usize,
}
