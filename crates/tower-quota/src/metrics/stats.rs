use ::metrics::{counter, gauge};
use tower_quota_core::{MemoryStats, Name, RefusalStats};

use super::table;
#[cfg(feature = "top")]
use crate::clients::TopClient;

/// Figures of a store for [`publish_stats`].
pub trait StoreStats {
    #[doc(hidden)]
    fn publish(&self, store: &'static str);
}

/// Sets the metrics of a store from its figures.
///
/// `store` becomes a label, so name every store differently. A call takes microseconds, or milliseconds for a large
/// memory store.
///
/// ```
/// use tower_quota::{MemoryStore, metrics};
///
/// metrics::publish_stats("main", &MemoryStore::new().stats());
/// ```
pub fn publish_stats(store: impl Into<Name>, stats: &impl StoreStats) {
    stats.publish(store.into().as_str());
}

pub(crate) fn publish_layer(layer: Name, waiting: usize, cache: RefusalStats) {
    let layer = layer.as_str();
    gauge!(table::WAITING, "layer" => layer).set(float(waiting as u64));
    counter!(table::CACHE_ANSWERED, "layer" => layer).absolute(cache.answered);
    counter!(table::CACHE_REMEMBERED, "layer" => layer).absolute(cache.remembered);
    counter!(table::CACHE_EVICTED, "layer" => layer).absolute(cache.evicted);
}

#[cfg(feature = "top")]
pub(crate) fn publish_clients(layer: Name, busiest: Option<&TopClient>, refused: &[TopClient]) {
    let layer = layer.as_str();
    let a_second = busiest.map_or(0, |client| client.at_least() / 60);
    gauge!(table::BUSIEST, "layer" => layer).set(float(a_second));
    gauge!(table::REFUSED_CLIENTS, "layer" => layer).set(float(refused.len() as u64));
    let longest = refused.iter().map(TopClient::retry_after).max();
    gauge!(table::LONGEST_WAIT, "layer" => layer).set(longest.unwrap_or_default());
}

impl StoreStats for MemoryStats {
    fn publish(&self, store: &'static str) {
        set(table::MEMORY_ENTRIES, store, self.entries as u64);
        set(table::MEMORY_CAPACITY, store, self.capacity as u64);
        set(table::MEMORY_BYTES, store, self.bytes as u64);
        count(table::MEMORY_EVICTIONS, store, self.evicted);
        count(table::MEMORY_LIMITED_EVICTIONS, store, self.evicted_limited);
        count(table::MEMORY_FILTER_HITS, store, self.filter_hits);
    }
}

#[cfg(feature = "redis")]
impl StoreStats for tower_quota_redis::RedisStats {
    fn publish(&self, store: &'static str) {
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
        set(table::REDIS_QUEUED, store, self.queued as u64);
        set(table::REDIS_IN_FLIGHT, store, self.calls_under_way as u64);
        gauge!(table::REDIS_CLOCK, "store" => store).set(seconds(self.clock_difference_micros));
        count(table::REDIS_DECISIONS, store, self.decisions);
        count(table::REDIS_CALLS, store, self.calls);
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
impl StoreStats for tower_quota_lease::LeaseStats {
    fn publish(&self, store: &'static str) {
        for (by, requests) in [
            ("lease", self.by_lease),
            ("store", self.by_store),
            ("refusal", self.refused_here),
        ] {
            counter!(table::LEASE_REQUESTS, "store" => store, "decided_by" => by)
                .absolute(requests);
        }
        count(table::LEASE_RENEWALS, store, self.renewals);
        for (fate, units) in [
            ("leased", self.units_leased),
            ("returned", self.units_returned),
            ("lost", self.units_lost),
        ] {
            counter!(table::LEASE_UNITS, "store" => store, "fate" => fate).absolute(units);
        }
        set(table::LEASE_HELD, store, self.units_held);
        set(table::LEASE_KEYS, store, self.keys as u64);
    }
}

fn set(metric: &'static str, store: &'static str, value: u64) {
    gauge!(metric, "store" => store).set(float(value));
}

fn count(metric: &'static str, store: &'static str, sum: u64) {
    counter!(metric, "store" => store).absolute(sum);
}

#[cfg(feature = "redis")]
#[expect(
    clippy::cast_precision_loss,
    clippy::float_arithmetic,
    reason = "recorders keep gauges as floats"
)]
const fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

#[expect(
    clippy::cast_precision_loss,
    reason = "recorders keep gauges as floats"
)]
pub(super) const fn float(figure: u64) -> f64 {
    figure as f64
}
