//! Metrics through the facade of the crate `metrics`; any recorder takes them.
//!
//! Requests are counted exactly, in counters of this crate that each thread has for itself.
//! [`publish_metrics`](crate::RateLimitHandle::publish_metrics) adds them to those of the recorder, and sets gauges:
//! call it before each scrape, or every few seconds. Histograms are recorded at once. So install the recorder before
//! the first request.
//!
//! ```
//! use tower_quota::{MemoryStore, Policy, RateLimitLayer, metrics};
//!
//! let store = MemoryStore::new();
//! let handle = RateLimitLayer::new(store.clone(), Policy::new()).handle();
//!
//! metrics::describe(); // once, after the recorder is installed
//! handle.publish_metrics("api");
//! metrics::publish_stats("main", &store.stats());
//! ```
//!
//! [`METRICS`] is the table of all names; `docs/METRICS.md` shows it.
//!
//! # Labels
//!
//! Clients cannot make new labels. `limit` is the name of a limit, `route` the pattern of axum's matched route, `none`
//! without one. Beyond [`MAX_ROUTES`] routes, [`MAX_LIMITS`] limits, or [`MAX_CELLS`] pairs of both, the label is
//! `other`. No label contains a key or an address.

mod latency;
mod outcome;
mod policy;
mod routes;
mod rules;
mod stats;
mod stopwatch;
mod table;
mod threads;
mod totals;

pub use self::latency::StoreLatency;
pub(crate) use self::outcome::{DegradedChoice, StoreFailureKind};
pub(crate) use self::policy::PolicyMetrics;
pub use self::rules::{
    record_applied_rules, record_audit_event, record_rejected_rules, record_reload,
};
pub(crate) use self::stats::publish_layer;
pub use self::stats::{StoreStats, publish_stats};
pub(crate) use self::stopwatch::Stopwatch;
pub use self::table::{METRICS, Metric, MetricKind, describe};
pub use self::totals::DecisionTotals;

/// The most routes of a policy that have labels of their own.
pub const MAX_ROUTES: usize = 512;

/// The most limits of a policy that have labels of their own.
pub const MAX_LIMITS: usize = 4_000;

/// The most pairs of a route and a limit that are counted one by one.
///
/// A policy of 16 limits has so many with 512 routes. With more limits, the decisions on later routes are counted under
/// the route `other`; requests are still counted by route.
pub const MAX_CELLS: usize = 8_192;

/// The most limits of a policy whose histograms are their own.
pub const MAX_HISTOGRAMS: usize = 64;
