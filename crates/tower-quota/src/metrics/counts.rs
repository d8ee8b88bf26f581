use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use ::metrics::Counter;

use crate::outcome_label::OutcomeLabel;

#[derive(Default)]
pub(super) struct Count {
    sum: AtomicU64,
    published: AtomicU64,
}

pub(super) type Counts = [Count; OutcomeLabel::TEXTS.len()];

pub(super) struct RouteCounts {
    pub(super) route: Arc<str>,
    pub(super) requests: Counts,
    /// The counts by limit, or empty if the route `other` counts.
    pub(super) limits: Box<[Counts]>,
}

impl Count {
    pub(super) fn add_one(&self) {
        self.sum.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    pub(super) fn publish(&self, counter: impl FnOnce() -> Counter) {
        let sum = self.get();
        // Two threads may publish at once, in any order.
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
            requests: Counts::default(),
            limits: (0..limits).map(|_| Counts::default()).collect(),
        })
    }
}
