//! Metrics for recorders of the crate [`metrics`](https://docs.rs/metrics).
//!
//! Install your recorder before you make the layer. Counters and histograms then count each request. Gauges need a call
//! of [`publish_stats`] before each scrape, for each layer and store.
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
//! metrics::publish_stats("api", &handle.stats()); // before each scrape
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
mod layer_stats;
mod policy;
mod quotas;
mod rules;
mod sample;
mod stats;
mod table;
mod totals;

pub use self::latency::StoreLatency;
pub use self::layer_stats::LayerStats;
pub(crate) use self::policy::PolicyMetrics;
pub(crate) use self::quotas::publish_quotas;
pub use self::rules::{
    record_admin_request, record_applied_rules, record_audit_event, record_rejected_rules,
    record_reload, record_shown_keys,
};
pub(crate) use self::sample::sample;
pub use self::stats::{StoreStats, publish_stats};
pub use self::table::{METRICS, Metric, MetricKind, describe};
pub use self::totals::DecisionTotals;
