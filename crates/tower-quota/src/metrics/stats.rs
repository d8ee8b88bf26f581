use ::metrics::{counter, gauge};
use tower_quota_core::{MemoryStats, Name};

use super::table;

/// Figures of a store or a layer for [`publish_stats`].
pub trait StoreStats {
    #[doc(hidden)]
    fn publish(&self, name: &'static str);
}

/// Sets the metrics of a store or a layer from its figures.
///
/// `name` becomes a label, so name every store and every layer differently. A call takes microseconds, or milliseconds for a large
/// memory store.
///
/// ```
/// use tower_quota::{MemoryStore, metrics};
///
/// metrics::publish_stats("main", &MemoryStore::new().stats());
/// ```
pub fn publish_stats(name: impl Into<Name>, stats: &impl StoreStats) {
    stats.publish(name.into().as_str());
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
