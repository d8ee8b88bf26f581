//! Metrics for any recorder of the crate [`metrics`](https://docs.rs/metrics).
//!
//! Call [`publish_metrics`](crate::RateLimitHandle::publish_metrics) before each scrape, or every few seconds. Requests are
//! counted exactly in this crate, and `publish_metrics` adds the counts to the recorder and sets the gauges. **Without this
//! call all counters of the recorder stay 0.** Histograms are recorded at once, so install the recorder before the first
//! request.
//!
//! Use the version of the crate `metrics` that this crate uses, 0.24. A recorder that you install through another version
//! gets nothing, and no error says so. `cargo tree -i metrics` must print one version.
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
//! [`METRICS`] is the table of all names; `docs/METRICS.md` shows the table.
//!
//! # Labels
//!
//! Clients cannot make new labels. `limit` is the name of a limit. `route` is the pattern of axum's matched route, or `none`.
//! Beyond [`MAX_ROUTES`] routes, [`MAX_LIMITS`] limits, or [`MAX_CELLS`] pairs of a route and a limit, the label is `other`.
//! No label contains a key or an address.

mod counts;
mod failure;
mod latency;
mod outcome;
mod policy;
mod replaced;
mod rules;
mod stats;
mod stopwatch;
mod table;
mod totals;

pub(crate) use self::failure::{DegradedChoice, StoreFailureKind};
pub use self::latency::StoreLatency;
pub(crate) use self::policy::PolicyMetrics;
pub(crate) use self::replaced::ReplacedMetrics;
pub use self::rules::{
    record_applied_rules, record_audit_event, record_rejected_rules, record_reload,
};
#[cfg(feature = "top")]
pub(crate) use self::stats::publish_clients;
pub(crate) use self::stats::publish_layer;
pub use self::stats::{StoreStats, publish_stats};
pub(crate) use self::stopwatch::Stopwatch;
pub use self::table::{METRICS, Metric, MetricKind, describe};
pub use self::totals::DecisionTotals;

/// The maximum number of routes of a policy with their own labels.
pub const MAX_ROUTES: usize = 512;

/// The maximum number of limits of a policy with their own labels.
pub const MAX_LIMITS: usize = 4_000;

/// The maximum number of pairs of a route and a limit with their own labels.
///
/// 16 limits on 512 routes reach the maximum. The decisions on later routes are counted under the route `other`, while
/// requests are still counted by route.
pub const MAX_CELLS: usize = 8_192;

/// The maximum number of limits of a policy with their own histograms.
pub const MAX_HISTOGRAMS: usize = 64;
