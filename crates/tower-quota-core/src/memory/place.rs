//! The place of a key in the store.

/// The place of one key.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The number of its shard. First, because places are sorted by it.
    pub(super) shard: usize,
    /// The hash that stands for the key.
    pub(super) hash: u64,
}
