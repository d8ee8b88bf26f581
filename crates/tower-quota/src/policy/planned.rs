//! The parts of a [`Plan`](super::Plan).

use core::ops::Range;
use std::sync::Arc;

use tower_quota_core::{Key, Name, Quota};

use super::choose::Choose;
use crate::degraded::OnStoreFailure;
use crate::key::KeyExtractor;
use crate::limit::Limit;

pub(super) struct PlannedChoice {
    pub(super) limits: Range<usize>,
    pub(super) choose: Arc<Choose>,
}

/// A limit of the plan. A simple limit fits in two cache lines, because thousands of limits are rarely cached.
#[repr(C, align(64))]
pub(super) struct PlannedLimit {
    pub(super) key: usize,
    pub(super) simple: Option<SimpleCharge>,
    pub(super) limit: Limit,
    pub(super) on_store_failure: Option<OnStoreFailure>,
    /// The share of this instance in an outage, unless a share is too small for a quota.
    pub(super) share: Option<Quota>,
}

pub(super) struct SimpleCharge {
    pub(super) name: Name,
    pub(super) quota: Quota,
    pub(super) cost: u64,
}

pub(super) struct PlannedKey {
    pub(super) extractor: Arc<dyn KeyExtractor>,
    /// The key that requests without a key share.
    pub(super) shared: Key<'static>,
    /// Whether all requests have the same key, so that no extractor is asked.
    pub(super) is_everyone: bool,
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::PlannedLimit;

    #[test]
    fn request_reads_two_lines_of_simple_limit() {
        let end = offset_of!(PlannedLimit, limit);
        assert!(end <= 128, "{end} bytes");
    }
}
