//! Counters that each thread has for itself.
//!
//! A thread adds to its own counters by a load and a store, a tenth of the time of an atomic addition, and threads that
//! count the same never wait for each other's cache line. Their sum is taken when the metrics are published.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use super::outcome::{LimitOutcome, RequestOutcome};
use super::routes::NUMBERS;

/// The counters of one thread, by the number of the route.
pub(super) struct ThreadCounts {
    /// Requests that all limits of the policy allowed: nearly all of them, so each is one addition here and nothing else.
    pub(super) all_allowed: [OwnCounter; NUMBERS],
    rows: Box<[OnceLock<Box<Row>>]>,
}

/// The other counters of one route.
pub(super) struct Row {
    pub(super) requests: [OwnCounter; RequestOutcome::LABELS.len()],
    pub(super) limits: Box<[LimitCounters]>,
}

/// The counters of one limit.
pub(super) type LimitCounters = [OwnCounter; LimitOutcome::LABELS.len()];

/// A counter that one thread adds to, and others read.
#[derive(Default)]
pub(super) struct OwnCounter(AtomicU64);

impl ThreadCounts {
    pub(super) fn new() -> Self {
        Self {
            all_allowed: [const { OwnCounter(AtomicU64::new(0)) }; NUMBERS],
            rows: (0..NUMBERS).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Returns the counters of a route, made when they are first needed, with room for this many limits.
    pub(super) fn row(&self, route: usize, limits: usize) -> &Row {
        self.rows[route].get_or_init(|| {
            let limits = (0..limits).map(|_| LimitCounters::default()).collect();
            Box::new(Row {
                requests: Default::default(),
                limits,
            })
        })
    }

    /// Returns the counters of a route, if it had a request that some limit did not allow.
    pub(super) fn get(&self, route: usize) -> Option<&Row> {
        self.rows[route].get().map(|row| &**row)
    }

    /// Returns the counters of all routes that had such requests.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter_map(OnceLock::get).map(|row| &**row)
    }
}

impl OwnCounter {
    /// Adds one. Only the thread that owns the counter may call it.
    #[inline]
    pub(super) fn add_one(&self) {
        self.0
            .store(self.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
