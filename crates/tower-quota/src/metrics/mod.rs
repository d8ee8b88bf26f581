//! Metrics for recorders of the crate [`metrics`](https://docs.rs/metrics).
//!
//! Call [`publish_metrics`](crate::RateLimitHandle::publish_metrics) before each scrape. **Without the call, all
//! counters stay 0.** Install your recorder before the first request, or lose its histograms.
//!
//! Use `metrics` 0.24. A recorder of another version silently gets no data, so `cargo tree -i metrics` must print one
//! version.
//!
//! ```
//! use tower_quota::{MemoryStore, Policy, RateLimitLayer, metrics};
//!
//! let store = MemoryStore::new();
//! let handle = RateLimitLayer::new(store.clone(), Policy::new()).handle();
//!
//! metrics::describe(); // once, after you install the recorder
//! handle.publish_metrics("api");
//! metrics::publish_stats("main", &store.stats());
//! ```
//!
//! [`METRICS`] lists all names.
//!
//! # Labels
//!
//! Clients cannot make labels, and labels hold no keys or addresses. `route` is axum's matched
//! route or `none`. Beyond 512 routes, 4,000 limits, or 8,192 pairs of both, the label is `other`.
//! Histograms have labels for 64 limits.

mod counts;
mod latency;
mod policy;
mod replaced;
mod rules;
mod sample;
mod stats;
mod table;
mod totals;

pub use self::latency::StoreLatency;
pub(crate) use self::policy::PolicyMetrics;
pub(crate) use self::replaced::ReplacedMetrics;
pub use self::rules::{
    record_applied_rules, record_audit_event, record_rejected_rules, record_reload,
};
pub(crate) use self::sample::sample;
#[cfg(feature = "top")]
pub(crate) use self::stats::publish_clients;
pub(crate) use self::stats::publish_layer;
pub use self::stats::{StoreStats, publish_stats};
pub use self::table::{METRICS, Metric, MetricKind, describe};
pub use self::totals::DecisionTotals;
