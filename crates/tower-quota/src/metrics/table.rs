//! The table of all metrics. For a new metric, add a row here and in `docs/reference/metrics.md`.

use ::metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metric {
    /// The Prometheus name.
    pub name: &'static str,
    /// The kind.
    pub kind: MetricKind,
    /// The unit in UCUM, such as `s` and `By`.
    pub unit: &'static str,
    /// The label names.
    pub labels: &'static [&'static str],
    /// The description in one sentence.
    pub description: &'static str,
    /// The upper bounds of histogram buckets.
    pub buckets: &'static [f64],
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// A sum that only grows.
    Counter,
    /// A figure that goes up and down.
    Gauge,
    /// A distribution of values.
    Histogram,
}

macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal $unit:literal [$($label:literal)*] $buckets:ident $description:literal;)*) => {
        $(
            #[cfg_attr(not(all(feature = "redis", feature = "lease", feature = "top")), allow(dead_code))]
            pub(super) const $constant: &str = $name;
        )*

        /// All metrics.
        pub const METRICS: &[Metric] = &[$(Metric {
            name: $name,
            kind: MetricKind::$kind,
            unit: $unit,
            labels: &[$($label),*],
            description: $description,
            buckets: $buckets,
        }),*];
    };
}

const NONE: &[f64] = &[];
const DURATIONS: &[f64] = &[
    1e-7, 2.5e-7, 5e-7, 1e-6, 2.5e-6, 1e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2,
    5e-2, 0.1, 1.0,
];
const WAITS: &[f64] = &[
    0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0, 86_400.0,
];
const SHARES: &[f64] = &[
    0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
];

metrics! {
    REQUESTS = Counter "tower_quota_requests_total" "{request}" ["route" "outcome"] NONE
        "Requests by route and outcome.";
    DECISIONS = Counter "tower_quota_decisions_total" "{decision}" ["limit" "route" "outcome"] NONE
        "Answers of each limit by route and outcome.";
    NEAR_LIMIT = Counter "tower_quota_near_limit_total" "{decision}" ["limit"] NONE
        "Admitted requests that left less than a fifth of the limit.";
    DECISION_DURATION = Histogram "tower_quota_decision_duration_seconds" "s" [] DURATIONS
        "Time of a decision. One of 64 if the store does not wait.";
    RETRY_AFTER = Histogram "tower_quota_retry_after_seconds" "s" ["limit"] WAITS
        "Wait of a refused request, by the limit with the longest wait.";
    REMAINING = Histogram "tower_quota_remaining_ratio" "1" ["limit"] SHARES
        "Share of a limit that a request leaves. One of 64 decisions.";
    STORE_DURATION = Histogram "tower_quota_store_duration_seconds" "s" [] DURATIONS
        "Time of a store call, failures included.";
    STORE_ERRORS = Counter "tower_quota_store_errors_total" "{error}" ["kind"] NONE
        "Store failures that the layer saw.";
    DEGRADED = Counter "tower_quota_degraded_total" "{request}" ["choice"] NONE
        "Requests decided without the store.";
    WAITING = Gauge "tower_quota_waiting_requests" "{request}" ["layer"] NONE
        "Requests that wait for their turn.";
    BUSIEST = Gauge "tower_quota_busiest_client_requests_per_second" "{request}/s" ["layer"] NONE
        "Rate of the busiest client in the last minute.";
    REFUSED_CLIENTS = Gauge "tower_quota_refused_clients" "{client}" ["layer"] NONE
        "Clients refused in the last minute, at most 256.";
    LONGEST_WAIT = Gauge "tower_quota_longest_wait_seconds" "s" ["layer"] NONE
        "Longest remaining wait of these clients.";
    LONGEST_AT_LIMIT = Gauge "tower_quota_longest_at_limit_seconds" "s" ["layer"] NONE
        "Longest time since the last admission of a client that is refused at least once a minute.";
    LIMIT_INFO = Gauge "tower_quota_limit_info" "1" ["limit" "algorithm" "units" "period"] NONE
        "1 for each limit with its quota.";
    LIMIT_RATE = Gauge "tower_quota_limit_units_per_second" "{unit}/s" ["limit"] NONE
        "Rate of the quota of a limit, without tiers and overrides.";
    CACHE_ANSWERED = Counter "tower_quota_refusal_cache_answered_total" "{request}" ["layer"] NONE
        "Requests refused from memory.";
    CACHE_REMEMBERED = Counter "tower_quota_refusal_cache_remembered_total" "{refusal}" ["layer"] NONE
        "Remembered refusals, and admissions that took the last units.";
    CACHE_EVICTED = Counter "tower_quota_refusal_cache_evicted_total" "{refusal}" ["layer"] NONE
        "Remembered refusals that were evicted.";
    MEMORY_ENTRIES = Gauge "tower_quota_memory_entries" "{entry}" ["store"] NONE
        "Entries of a memory store.";
    MEMORY_CAPACITY = Gauge "tower_quota_memory_capacity_entries" "{entry}" ["store"] NONE
        "Capacity of a memory store.";
    MEMORY_BYTES = Gauge "tower_quota_memory_bytes" "By" ["store"] NONE
        "Memory of a store's tables.";
    MEMORY_EVICTIONS = Counter "tower_quota_memory_evictions_total" "{entry}" ["store"] NONE
        "Entries evicted before they were full.";
    MEMORY_LIMITED_EVICTIONS = Counter "tower_quota_memory_limited_evictions_total" "{entry}" ["store"] NONE
        "Evicted entries with an exhausted limit.";
    MEMORY_FILTER_HITS = Counter "tower_quota_memory_filter_hits_total" "{hit}" ["store"] NONE
        "Decisions that the evicted filter knew as exhausted.";
    REDIS_PARTITIONS = Gauge "tower_quota_redis_partitions" "{partition}" ["store" "breaker"] NONE
        "Partitions by the state of their breaker.";
    REDIS_BREAKER = Counter "tower_quota_redis_breaker_transitions_total" "{transition}" ["store" "to"] NONE
        "Changes of the breakers' states.";
    REDIS_QUEUED = Gauge "tower_quota_redis_queued_decisions" "{decision}" ["store"] NONE
        "Decisions that wait for a call.";
    REDIS_IN_FLIGHT = Gauge "tower_quota_redis_calls_in_flight" "{call}" ["store"] NONE
        "Calls under way.";
    REDIS_DECISIONS = Counter "tower_quota_redis_decisions_total" "{decision}" ["store"] NONE
        "Decisions sent. Divide by the calls for the batch size.";
    REDIS_CALLS = Counter "tower_quota_redis_calls_total" "{call}" ["store"] NONE
        "Calls of Redis.";
    REDIS_ERRORS = Counter "tower_quota_redis_errors_total" "{decision}" ["store" "kind"] NONE
        "Decisions that ended in an error.";
    REDIS_CLOCK = Gauge "tower_quota_redis_clock_difference_seconds" "s" ["store"] NONE
        "Clock of Redis minus clock of this instance.";
    LEASE_REQUESTS = Counter "tower_quota_lease_requests_total" "{request}" ["store" "decided_by"] NONE
        "Requests behind leases, by the decider.";
    LEASE_RENEWALS = Counter "tower_quota_lease_renewals_total" "{call}" ["store"] NONE
        "Calls for leases.";
    LEASE_UNITS = Counter "tower_quota_lease_units_total" "{unit}" ["store" "fate"] NONE
        "Units charged in advance, refunded, and lost.";
    LEASE_HELD = Gauge "tower_quota_lease_held_units" "{unit}" ["store"] NONE
        "Units that instances hold now.";
    LEASE_KEYS = Gauge "tower_quota_lease_keys" "{key}" ["store"] NONE
        "Keys with observed demand.";
    RULES_RELOADS = Counter "tower_quota_rules_reloads_total" "{reload}" ["result"] NONE
        "Attempts to read the rules.";
    RULES_REJECTED = Gauge "tower_quota_rules_rejected" "1" [] NONE
        "1 while the newest document is invalid, otherwise 0.";
    RULES_VERSION = Gauge "tower_quota_rules_version" "1" [] NONE
        "Version of the rules in force, 0 before the first.";
    RULES_HASH = Gauge "tower_quota_rules_hash" "1" [] NONE
        "Hash of the text of the rules in force.";
    RULES_CONFIRMED = Gauge "tower_quota_rules_confirmed_timestamp_seconds" "s" [] NONE
        "Last confirmation of the rules in force, since 1970.";
    RULES_APPLIED = Gauge "tower_quota_rules_applied_timestamp_seconds" "s" [] NONE
        "Start of the rules in force, since 1970.";
    AUDIT_EVENTS = Counter "tower_quota_audit_events_total" "{event}" ["kind"] NONE
        "Records of the audit log.";
    ADMIN_REQUESTS = Counter "tower_quota_admin_requests_total" "{request}" ["role" "status"] NONE
        "Requests of the admin API. The role is none without a valid token.";
    ADMIN_SHOWN_KEYS = Counter "tower_quota_admin_shown_keys_total" "{request}" ["role"] NONE
        "Requests that the admin API answered with readable keys.";
}

/// Describes all metrics to your recorder. Call this function once, after you install the recorder.
pub fn describe() {
    for metric in METRICS {
        let unit = match metric.unit {
            "s" => Unit::Seconds,
            "By" => Unit::Bytes,
            _ => Unit::Count,
        };
        match metric.kind {
            MetricKind::Counter => describe_counter!(metric.name, unit, metric.description),
            MetricKind::Gauge => describe_gauge!(metric.name, unit, metric.description),
            MetricKind::Histogram => describe_histogram!(metric.name, unit, metric.description),
        }
    }
}
