//! Gauges and counters that are set from figures of stores and layers.

use ::metrics::{counter, gauge};
use tower_quota_core::{MemoryStats, Name, RefusalStats};

use super::table;

/// Figures of a store that [`publish_stats`] takes.
pub trait StoreStats: sealed::Publish {}

mod sealed {
    use tower_quota_core::Name;

    /// Sets the metrics of a store.
    pub trait Publish {
        /// Sets the metrics of the store of this name.
        fn publish(&self, store: Name);
    }
}

use self::sealed::Publish;

/// Sets the metrics of a store from its figures.
///
/// They have the label `store` with this name: give each store of a process another one, and call it for each store
/// from one place. It takes some microseconds, and the figures of a large memory store some milliseconds.
///
/// ```
/// use tower_quota::{MemoryStore, metrics};
///
/// metrics::publish_stats("main", &MemoryStore::new().stats());
/// ```
pub fn publish_stats(store: impl Into<Name>, stats: &impl StoreStats) {
    stats.publish(store.into());
}

/// Sets the metrics of a layer.
pub(crate) fn publish_layer(
    layer: Name,
    waiting: usize,
    refused_clients: usize,
    busiest: u64,
    cache: RefusalStats,
) {
    let layer = layer.as_str();
    gauge!(table::WAITING, "layer" => layer).set(float(waiting as u64));
    gauge!(table::REFUSED_CLIENTS, "layer" => layer).set(float(refused_clients as u64));
    gauge!(table::BUSIEST, "layer" => layer).set(float(busiest));
    counter!(table::CACHE_ANSWERED, "layer" => layer).absolute(cache.answered);
    counter!(table::CACHE_REMEMBERED, "layer" => layer).absolute(cache.remembered);
    counter!(table::CACHE_EVICTED, "layer" => layer).absolute(cache.evicted);
}

impl StoreStats for MemoryStats {}

impl Publish for MemoryStats {
    fn publish(&self, store: Name) {
        let store = store.as_str();
        gauge!(table::MEMORY_ENTRIES, "store" => store).set(float(self.entries as u64));
        gauge!(table::MEMORY_CAPACITY, "store" => store).set(float(self.capacity as u64));
        gauge!(table::MEMORY_BYTES, "store" => store).set(float(self.bytes as u64));
        counter!(table::MEMORY_EVICTIONS, "store" => store).absolute(self.evicted);
        counter!(table::MEMORY_LIMITED_EVICTIONS, "store" => store).absolute(self.evicted_limited);
        counter!(table::MEMORY_FILTER_HITS, "store" => store).absolute(self.filter_hits);
    }
}

#[cfg(feature = "redis")]
impl StoreStats for tower_quota_redis::RedisStats {}

#[cfg(feature = "redis")]
impl Publish for tower_quota_redis::RedisStats {
    fn publish(&self, store: Name) {
        let store = store.as_str();
        for (breaker, partitions) in [
            ("closed", self.closed_partitions),
            ("open", self.open_partitions),
        ] {
            gauge!(table::REDIS_PARTITIONS, "store" => store, "breaker" => breaker)
                .set(float(partitions as u64));
        }
        for (to, transitions) in [
            ("open", self.breaker_openings),
            ("closed", self.breaker_closings),
        ] {
            counter!(table::REDIS_BREAKER, "store" => store, "to" => to).absolute(transitions);
        }
        gauge!(table::REDIS_QUEUED, "store" => store).set(float(self.queued as u64));
        gauge!(table::REDIS_IN_FLIGHT, "store" => store).set(float(self.calls_under_way as u64));
        counter!(table::REDIS_DECISIONS, "store" => store).absolute(self.decisions);
        counter!(table::REDIS_CALLS, "store" => store).absolute(self.calls);
        let errors = &self.errors;
        for (kind, count) in [
            ("connect", errors.connect),
            ("breaker_open", errors.breaker_open),
            ("overloaded", errors.overloaded),
            ("deadline", errors.deadline),
            ("refused", errors.refused),
            ("moving", errors.moving),
            ("lost", errors.lost),
            ("unreadable", errors.unreadable),
            ("other", errors.other),
        ] {
            counter!(table::REDIS_ERRORS, "store" => store, "kind" => kind).absolute(count);
        }
    }
}

#[cfg(feature = "lease")]
impl StoreStats for tower_quota_lease::LeaseStats {}

#[cfg(feature = "lease")]
impl Publish for tower_quota_lease::LeaseStats {
    fn publish(&self, store: Name) {
        let store = store.as_str();
        for (by, requests) in [
            ("lease", self.by_lease),
            ("store", self.by_store),
            ("refusal", self.refused_here),
        ] {
            counter!(table::LEASE_REQUESTS, "store" => store, "decided_by" => by)
                .absolute(requests);
        }
        counter!(table::LEASE_RENEWALS, "store" => store).absolute(self.renewals);
        for (fate, units) in [
            ("leased", self.units_leased),
            ("returned", self.units_returned),
            ("lost", self.units_lost),
        ] {
            counter!(table::LEASE_UNITS, "store" => store, "fate" => fate).absolute(units);
        }
        gauge!(table::LEASE_HELD, "store" => store).set(float(self.units_held));
        gauge!(table::LEASE_KEYS, "store" => store).set(float(self.keys as u64));
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "recorders keep gauges as floats"
)]
pub(super) const fn float(figure: u64) -> f64 {
    figure as f64
}
