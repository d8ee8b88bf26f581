//! Counters of this crate, which are added to those of the recorder when the metrics are published.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use ::metrics::Counter;

use super::outcome::{LimitOutcome, RequestOutcome};

/// A counter, and the part of it that was published.
#[derive(Default)]
pub(super) struct Count {
    sum: AtomicU64,
    published: AtomicU64,
}

/// The counters of one limit, by outcome.
pub(super) type LimitCounts = [Count; LimitOutcome::LABELS.len()];

/// The counters of one route.
pub(super) struct RouteCounts {
    pub(super) route: Arc<str>,
    pub(super) requests: [Count; RequestOutcome::LABELS.len()],
    /// The limits of the policy, or nothing if they are counted under another route.
    pub(super) limits: Box<[LimitCounts]>,
}

impl Count {
    pub(super) fn add_one(&self) {
        self.sum.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    /// Adds the requests since the last time to a counter of the recorder.
    pub(super) fn publish(&self, counter: impl FnOnce() -> Counter) {
        let sum = self.get();
        // Two threads may publish at the same time, so the later sum may come first.
        let published = self.published.fetch_max(sum, Ordering::Relaxed);
        if sum > published {
            counter().increment(sum - published);
        }
    }
}

impl RouteCounts {
    pub(super) fn new(route: &str, limits: usize) -> Arc<Self> {
        Arc::new(Self {
            route: route.into(),
            requests: Default::default(),
            limits: (0..limits).map(|_| LimitCounts::default()).collect(),
        })
    }
}
