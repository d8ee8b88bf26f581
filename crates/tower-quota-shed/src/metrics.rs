//! Metrics for recorders of the crate [`metrics`](https://docs.rs/metrics), version 0.24.
//!
//! | metric | kind | labels | content |
//! |---|---|---|---|
//! | `tower_quota_shed_limit_requests` | gauge | `layer` | the limit of requests in progress |
//! | `tower_quota_shed_in_progress_requests` | gauge | `layer` | the requests in progress |
//! | `tower_quota_shed_long_bodies` | gauge | `layer` | the responses in progress on top of the limit |
//! | `tower_quota_shed_waiting_requests` | gauge | `layer` | the requests that wait for a place |
//! | `tower_quota_shed_active` | gauge | `layer` | 1 while the layer sheds requests, otherwise 0 |
//! | `tower_quota_shed_latency_seconds` | gauge | `layer`, `kind` | time to the head of a response, `base` and `present` |
//! | `tower_quota_shed_refused_total` | counter | `layer`, `priority`, `cause` | the refused requests |
//!
//! ```
//! use tower_quota_shed::{ShedLayer, metrics};
//!
//! let layer = ShedLayer::new();
//! let handle = layer.handle();
//! metrics::publish_stats("api", &handle.stats()); // before each scrape
//! ```

use metrics::{counter, gauge};

use crate::cause::Cause;
use crate::handle::ShedStats;
use crate::priority::Priority;

/// Publishes the figures of a layer. Call this function before each scrape.
pub fn publish_stats(layer: &str, stats: &ShedStats) {
    let layer = || layer.to_owned();
    let whole = [
        ("tower_quota_shed_limit_requests", stats.limit),
        ("tower_quota_shed_in_progress_requests", stats.in_progress),
        ("tower_quota_shed_long_bodies", stats.long_bodies),
        ("tower_quota_shed_waiting_requests", stats.waiting),
        ("tower_quota_shed_active", usize::from(stats.is_shedding)),
    ];
    for (name, value) in whole {
        gauge!(name, "layer" => layer()).set(value as f64);
    }
    for (kind, latency) in [("base", stats.base_latency), ("present", stats.latency)] {
        if let Some(latency) = latency {
            let name = "tower_quota_shed_latency_seconds";
            gauge!(name, "layer" => layer(), "kind" => kind).set(latency);
        }
    }
    for priority in Priority::ALL {
        for cause in Cause::ALL {
            let labels = [
                ("layer", layer()),
                ("priority", priority.name().into()),
                ("cause", cause.name().into()),
            ];
            let refused = stats.refused(priority, cause);
            if refused > 0 {
                counter!("tower_quota_shed_refused_total", &labels).absolute(refused);
            }
        }
    }
}
