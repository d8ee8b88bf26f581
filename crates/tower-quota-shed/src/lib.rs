//! A layer with which your service refuses requests that it cannot answer in time.
//!
//! ```
//! use axum::{Router, routing::get};
//! use tower_quota::{key, when};
//! use tower_quota_shed::{Priority, ShedLayer};
//!
//! let shed = ShedLayer::new()
//!     .exempt(when::path("/events"))
//!     .priority(Priority::Critical.when(when::path("/checkout")))
//!     .fair_by(key::header("x-tenant"));
//! let handle = shed.handle();
//! let app: Router = Router::new().route("/checkout", get(|| async { "paid" })).layer(shed);
//! assert_eq!(handle.stats().in_progress, 0);
//! # let _ = app;
//! ```
//!
//! # What happens to a request
//!
//! 1. Health checks and [exempt](ShedLayer::exempt) requests go to the service.
//! 2. Below half of the limit, the request takes a place. The limit comes from the latency of your service.
//! 3. Above, the [class](Priority) and the [share](ShedLayer::fair_by) of the key decide about the remaining places.
//! 4. A request without a place [waits](ShedLayer::queue) if you allow it, or gets 503 with `Retry-After`.
//! 5. The head of the response tells the layer how long the service took.
//! 6. The place is free when the body has ended or the client has gone. A body of more than 0.2 s leaves the limit, and
//!    only counts below the [ceiling](LimitSettings::ceiling).
//!
//! # Why these choices
//!
//! * **Latency is the time to the head.** The time of a body depends on how fast the client reads.
//! * **Classes leave room instead of having places.** A class fills every place that better classes do not need.
//! * **A refusal says nothing about other clients.** The header fields `tower-quota-shed-priority` and
//!   `tower-quota-shed-cause` have the class of the request and the [cause](Cause), for callers, gateways and access logs.
//!
//! # Caveats
//!
//! * **The work in a long body is not limited** until you call [`ShedLayer::until_end`].
//! * **Keys of shares should be authenticated.** A client with ten keys that it uses again gets ten shares.
//! * **The service must be `Clone` and `Send`.** Put other services behind tower's `Buffer`, inside the layer.
//! * **Only a queue needs tokio**, with a timer.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `axum` | rules by axum's matched route |
//! | `tonic` | refusals in gRPC for tonic servers |
//! | `metrics` | `metrics::publish_stats` for the crate `metrics` |

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod cause;
mod clock;
mod error;
mod gate;
mod handle;
mod layer;
mod limit;
#[cfg(feature = "metrics")]
pub mod metrics;
mod priority;
mod settings;
mod sync;

pub use self::cause::Cause;
pub use self::error::ConfigError;
pub use self::handle::{ShedHandle, ShedStats};
pub use self::layer::{ResponseBody, ResponseFuture, ShedLayer, ShedService};
pub use self::limit::LimitSettings;
pub use self::priority::Priority;

/// Tests the code of the README and of the guide.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/guide/shedding.md")]
    mod guide {}
}
