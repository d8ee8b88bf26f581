//! What a shard remembers of evicted rows.

use super::filter::EvictedFilter;
use super::sketch::UseSketch;

/// The memory of evicted rows: their spent limits, and how often they were used.
#[derive(Default)]
pub(super) struct Evicted {
    pub(super) filter: EvictedFilter,
    pub(super) sketch: UseSketch,
    /// Evictions since the uses of the rows were halved.
    pub(super) evictions: usize,
}
