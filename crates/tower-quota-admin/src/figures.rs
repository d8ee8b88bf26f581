use std::collections::BTreeMap;
use std::sync::Arc;

use tower_quota::store::MemoryStats;

/// The figures of a store for the health report, and whether the store answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct StoreFigures {
    pub(crate) unavailable: bool,
    /// Whether the requests that the layer decides without its store show that this store fails.
    pub(crate) fails_with_layer: bool,
    pub(crate) figures: BTreeMap<&'static str, u64>,
}

pub(crate) type NamedFigures = (String, Arc<dyn Fn() -> StoreFigures + Send + Sync>);

impl StoreFigures {
    /// Creates figures of an available store.
    ///
    /// ```
    /// use tower_quota_admin::StoreFigures;
    ///
    /// let figures = StoreFigures::new([("connections", 4)]);
    /// ```
    pub fn new(figures: impl IntoIterator<Item = (&'static str, u64)>) -> Self {
        Self {
            unavailable: false,
            fails_with_layer: false,
            figures: figures.into_iter().collect(),
        }
    }

    /// Sets whether the store fails, completely or in part.
    pub const fn unavailable(mut self, unavailable: bool) -> Self {
        self.unavailable = unavailable;
        self
    }
}

impl From<MemoryStats> for StoreFigures {
    fn from(stats: MemoryStats) -> Self {
        Self::new([
            ("entries", stats.entries as u64),
            ("capacity", stats.capacity as u64),
            ("evicted", stats.evicted),
            ("evicted_limited", stats.evicted_limited),
            ("definitions", stats.definitions as u64),
            ("bytes", stats.bytes as u64),
        ])
    }
}

/// The store is unavailable while a breaker is open, and for ten seconds after a failure.
#[cfg(feature = "redis")]
impl From<tower_quota_redis::RedisStats> for StoreFigures {
    fn from(stats: tower_quota_redis::RedisStats) -> Self {
        let errors = stats.errors;
        let mut figures = Self::new([
            ("breakers_closed", stats.closed_partitions as u64),
            ("breakers_open", stats.open_partitions as u64),
            ("queued", stats.queued as u64),
            ("calls_under_way", stats.calls_under_way as u64),
            ("decisions", stats.decisions),
            ("calls", stats.calls),
            ("errors_connect", errors.connect),
            ("errors_breaker_open", errors.breaker_open),
            ("errors_overloaded", errors.overloaded),
            ("errors_deadline", errors.deadline),
            ("errors_refused", errors.refused),
            ("errors_moving", errors.moving),
            ("errors_lost", errors.lost),
            ("errors_unreadable", errors.unreadable),
            ("errors_other", errors.other),
        ]);
        figures.fails_with_layer = true;
        figures.unavailable(stats.open_partitions > 0)
    }
}
