use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use ::metrics::Counter;

use crate::observe::OutcomeLabel;

/// A counter of the recorder, and its sum under this policy.
///
/// The counter is made at the first count, so outcomes that never happen have no series.
#[derive(Default)]
pub(super) struct Count {
    sum: AtomicU64,
    counter: OnceLock<Counter>,
}

pub(super) type Counts = [Count; OutcomeLabel::TEXTS.len()];

pub(super) struct RouteCounts {
    pub(super) route: Arc<str>,
    pub(super) requests: Counts,
    /// The counts by limit, or empty if the route `other` counts.
    pub(super) limits: Box<[Counts]>,
}

impl Count {
    pub(super) fn add_one(&self, counter: impl FnOnce() -> Counter) {
        self.sum.fetch_add(1, Ordering::Relaxed);
        self.counter.get_or_init(counter).increment(1);
    }

    pub(super) fn get(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
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
