//! The memory of evicted rows.

use super::filter::EvictedFilter;
use super::sketch::UseSketch;

#[derive(Default)]
pub(super) struct Evicted {
    pub(super) filter: EvictedFilter,
    pub(super) sketch: UseSketch,
    pub(super) evictions: usize,
}
