//! Rate limiting for Axum, tonic and any tower service: several limits decided in one atomic step.
//!
//! ```
//! use axum::{Router, routing::get};
//! use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};
//!
//! let policy = Policy::new()
//!     .limit(Limit::new("burst", Quota::per_second(10).burst(20)).by(key::client_ip()))
//!     .limit(Limit::new("minute", Quota::per_minute(100).fixed_window()).by(key::client_ip()))
//!     .limit(Limit::new("everyone", Quota::per_second(5_000)));
//!
//! let app: Router = Router::new()
//!     .route("/", get(|| async { "hello" }))
//!     .layer(RateLimitLayer::new(MemoryStore::new(), policy));
//! ```
//!
//! # Guides
//!
//! | guide | content |
//! |---|---|
//! | Coming from [governor], [tower_governor], [express-rate-limit], [limitador or Envoy] | the equivalents, and the differences |
//! | [Behind a proxy](guide::behind_a_proxy) | trusted proxies, hops, IPv6 |
//! | [Nesting in Axum](guide::nesting_in_axum) | `layer` and `route_layer`, limits per route, the order of layers |
//! | [Choosing an algorithm](guide::choosing_an_algorithm) | the traffic that each admits, its guarantees and its cost |
//! | [Without HTTP](guide::without_http) | jobs, messages, calls to another party's API |
//! | [Clients that retry](guide::clients) | JavaScript, Python and Go: `Retry-After`, jitter, giving up |
//! | [gRPC](guide::grpc) | tonic servers, streams, both protocols in one service |
//! | [Operations](guide::operations) | peek, reset, grant, block, change quotas while requests run; metrics; shutdown |
//! | [Metrics](guide::metrics) | counters, latencies, a dashboard, alerts, logs of refusals |
//! | [Outages](guide::outages) | fail open, fail closed, local counters; deadlines and the breaker |
//! | [Regions](guide::regions) | one quota for regions that are far apart |
//! | [Leases](guide::leases) | hot clients decided in memory beside a shared store, with an exact total |
//! | [Live rules](guide::live_rules) | documents that change while requests run: versions, rollback, roll-outs, blocks, audit |
//! | [Admin](guide::admin) | rules, clients, blocks over HTTP, for people on call and programs |
//! | [Command line](guide::command_line) | check and compare rules, replay access logs, operate services |
//! | [Testing your limits](guide::testing_your_limits) | a clock that tests move, a store that fails on command |
//! | [Writing a store](guide::writing_a_store), [adding an algorithm](guide::adding_an_algorithm) | extensions of the crate |
//!
//! [governor]: guide::from_governor
//! [tower_governor]: guide::from_tower_governor
//! [express-rate-limit]: guide::from_express_rate_limit
//! [limitador or Envoy]: guide::from_limitador_or_envoy
//!
//! # What happens to a request
//!
//! 1. The lists of the policy come first. Requests that it [allows](Policy::allow) or [skips](Policy::skip) are sent to
//!    the inner service uncounted. Those that it [blocks](Policy::block) get 403.
//! 2. Values that limits need and the request does not contain are [looked up](Policy::look_up), up to a deadline.
//! 3. Each limit that [applies](Limit::when) reads its [key] from the request's [head](RequestHead), and its
//!    [quota](Limit::quota_with) and [cost](Limit::cost_with) if they depend on the request. Each closure runs once. If
//!    the key is missing, the limit [chooses](MissingKey) what happens.
//! 4. If no limit applies, the inner service is called without the store.
//! 5. The store decides all limits in one step: all are charged, or none is. Except for look-ups it is the only wait
//!    before the handler, and a [`MemoryStore`] does not wait.
//! 6. A refused request is answered with 429 by the [`Refusal`], or with `RESOURCE_EXHAUSTED` if the
//!    [protocol](Protocol) is gRPC.
//! 7. An admitted request is sent to the inner service, after its [wait](Limit::max_wait) if a leaky bucket gave it a
//!    later turn. Other requests can pass it in the meantime. The number of waiting requests is
//!    [bounded](RateLimitLayer::max_waiting). If a waiting request is dropped, its turn is refunded.
//! 8. The response gets the rate limit fields. Handlers and outer layers find the [`Decision`] in the extensions if the
//!    layer [attaches](RateLimitLayer::attach_decision) it.
//! 9. A limit that [settles](Limit::settle) corrects the cost when the request is over, and a limit with
//!    [`Quota::concurrent`] releases its units: see [`settle`].
//!
//! A [soft limit](Limit::over) flags or delays requests over its quota instead of refusing them.
//!
//! Steps that a policy does not use cost nothing. [`RateLimitLayer::on_decision`] reports every decision, for metrics.
//! [`RateLimitLayer::handle`] peeks at clients, resets, grants, blocks, and replaces the policy while requests run.
//!
//! # What clients see
//!
//! | field | on an admitted request | on a refused one |
//! |---|---|---|
//! | `RateLimit-Policy` | `"burst";q=20;w=2`: each limit's capacity, and the seconds an empty one takes to fill | the same |
//! | `RateLimit` | `"burst";r=19;t=1`: units left, and the seconds over which they can be spent | the limits that refuse; `t` is the time until this request would be admitted |
//! | `X-RateLimit-Limit`, `-Remaining`, `-Reset` | the same of the tightest limit; the reset is a Unix timestamp | the limit that refuses |
//! | `Retry-After` | none | seconds until this request would be admitted, never 0; absent if it never would be |
//!
//! All seconds are rounded up. The first two fields follow draft-ietf-httpapi-ratelimit-headers-11, which is the same on
//! the wire since draft 8. A client that spreads `r` units over `t` seconds is admitted, unless others share its key.
//!
//! [`RateLimitLayer::headers`] sets other styles. [`RateLimitLayer::retry_jitter`] spreads the retries of refused
//! clients. `docs/ANSWERS.md` lists every response in each protocol.
//!
//! # When the store is unavailable
//!
//! A client that is known to be over its limit stays refused. Other requests pass uncounted, unless their limits
//! [choose](Limit::on_store_failure) otherwise: see [`OnStoreFailure`] and
//! the guide to [outages](guide::outages). [`RateLimitLayer::on_store_error`] reports every failure. Without it, a
//! layer whose limits allow runs without limits and without a log.
//!
//! # Customised
//!
//! The store is chosen at run time, one limit counts by the tenant that an outer layer attaches, costs differ, uploads
//! are queued, refusals are plain text, and a handler reads the remaining units:
//!
#![cfg_attr(feature = "axum", doc = "```")]
#![cfg_attr(not(feature = "axum"), doc = "```ignore")]
//! use axum::{Router, routing::get};
//! use http::Method;
//! use std::time::Duration;
//! use tower_quota::{
//!     BoxStore, Limit, MemoryStore, MissingKey, OnStoreFailure, Policy, Quota, RateLimitLayer, RequestDecision, key,
//! };
//!
//! #[derive(Clone)]
//! struct Tenant(String);
//!
//! let policy = Policy::new()
//!     .limit(
//!         Limit::new("tenant", Quota::per_hour(1_000))
//!             .by(key::from_fn("tenant", |head| Some(head.extensions().get::<Tenant>()?.0.clone())))
//!             .when_missing(MissingKey::Unauthenticated)
//!             .cost_with(|head| if head.uri().path() == "/search" { 10 } else { 1 }),
//!     )
//!     .limit(
//!         Limit::new("uploads", Quota::per_second(2).leaky_bucket().queue(50))
//!             .when(|head| head.method() == Method::PUT)
//!             .max_wait(Duration::from_secs(5)),
//!     )
//!     .on_store_failure(OnStoreFailure::Refuse);
//!
//! let layer: RateLimitLayer<BoxStore> = RateLimitLayer::new(BoxStore::new(MemoryStore::new()), policy)
//!     .on_refused(|refused| (refused.status(), refused.detail()))
//!     .attach_decision();
//!
//! async fn left(RequestDecision(decision): RequestDecision) -> String {
//!     let Some(decision) = decision else { return String::from("not counted") };
//!     decision.statuses().iter().map(|limit| format!("{}: {}\n", limit.name, limit.remaining())).collect()
//! }
//!
//! let app: Router = Router::new().route("/left", get(left)).layer(layer);
//! ```
//!
//! # Caveats
//!
//! * **Mistakes are logged.** A mistake in the configuration that only traffic shows is logged once through `tracing`,
//!   with the fix: see [`Check`], [`RateLimitHandle::mistakes`] and `docs/MISTAKES.md`.
//! * **Peer addresses.** [`key::client_ip`] needs the feature `axum` or `tonic`, and an axum app must be served with
//!   `into_make_service_with_connect_info::<SocketAddr>()`. Without an address the response is 500, unless the limit
//!   chooses [otherwise](Limit::when_missing). [Behind a proxy](guide::behind_a_proxy) the peer is the proxy, unless
//!   [`ClientIp::behind`](key::ClientIp::behind) names the trusted proxies.
//! * **The position of the layer** decides which requests it counts: `Router::layer` counts 404s, `Router::route_layer`
//!   does not, and `CorsLayer` belongs outside. See [nesting in Axum](guide::nesting_in_axum).
//! * **Names identify counters.** Limits of one name that count the same key in one store share one counter, across
//!   layers, policies, and services with the same Redis prefix. Give them [different names](Limit::new), such as
//!   `login-minute`, unless they should share. If their quotas differ, they convert each other's counters again and
//!   again.
//! * **Combined keys** are missing if [one part](key::all()) is. [`key::first_of`](key::first_of()) uses the first part
//!   that is not missing.
//! * **The service must be `Clone`**, because requests that wait are sent to a clone of it. Services of axum and tonic
//!   are; put others behind tower's `Buffer`, inside this layer.
//! * **Waiting** needs a tokio runtime with its timer, and holds the request in memory. A cancelled request frees its turn
//!   only if the turn is the last one. An earlier turn stays empty, so turns never come closer together than the rate. Each
//!   key gets a [fair share](RateLimitLayer::max_waiting) of the places.
//! * **Clients that disconnect** before the store has answered may have been charged. Only limits that settle or make
//!   requests wait refund the charge.
//! * **Units and deadlines.** `Retry-After` is in seconds, rounded up; the [`Decision`] has microseconds. A [`RedisStore`]
//!   answers within 50 ms. Other stores have [5 seconds](RateLimitLayer::store_timeout), and need a tokio runtime with its
//!   timer if they do not answer at once.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `axum` | `key::route`, `key::path_parameter`, `when::route`; peer addresses from axum's `ConnectInfo`; `settle::Reservation` and `RequestDecision` as extractors; axum responses as refusals |
//! | `tonic` | peer addresses of tonic servers; refusals in gRPC to what a tonic server received |
//! | `jwt` | `key::jwt_claim`, for applications that have chosen a crypto backend of the crate `jsonwebtoken` |
//! | `jwt-rust-crypto` | `jwt`, and that crate's backend `rust_crypto` |
//! | `calendar` | `Quota::calendar`: windows that are days, weeks, months or years in a time zone |
//! | `redis` | `RedisStore`, a store that instances share, with its options and errors |
//! | `tls` | `redis`, and `rediss://` URLs |
//! | `pool` | `redis`, and `RedisOptions::pool` for a pool of `deadpool-redis` |
//! | `credentials` | `redis`, and `RedisOptions::credentials` for tokens that are renewed before they end |
//! | `throttle` | `ThrottleLayer`: the calls of your client wait for their turn, obey the remote service, and are retried |
//! | `metrics` | `metrics`: counters, gauges and histograms for any recorder of the crate `metrics` |
//! | `top` | `RateLimitHandle::top_refused` and `top_busy`: the clients with most requests; `tower-quota-rules` turns it on |
//! | `lease` | `Leased`: hot clients are decided in memory, and all instances together stay exact; `Regional`: regions share quotas |
//!

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod checks;
mod clients;
pub mod cost;
mod decided;
mod degraded;
mod flagged;
#[cfg(any(doc, doctest))]
pub mod guide;
mod handle;
mod head;
pub mod key;
mod layer;
mod limit;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(not(feature = "metrics"))]
#[path = "metrics/off.rs"]
mod metrics;
pub mod policy;
mod protocol;
mod request;
#[cfg(feature = "axum")]
mod request_decision;
pub mod response;
pub mod settle;
mod store_call;
#[cfg(feature = "throttle")]
pub mod throttle;
mod traced;
mod valid;
pub mod when;

pub use self::checks::{Check, ChecksReport};
#[cfg(feature = "top")]
pub use self::clients::{TopClient, TopWindow};
pub use self::decided::Decided;
pub use self::degraded::{Degraded, OnStoreFailure};
pub use self::flagged::Flagged;
pub use self::handle::{ClientKey, HandleError, RateLimitHandle};
pub use self::head::RequestHead;
pub use self::layer::{CloseConnection, RateLimit, RateLimitLayer, ResponseBody, ResponseFuture};
pub use self::limit::{Limit, MissingKey, Over};
pub use self::policy::Policy;
pub use self::protocol::Protocol;
#[cfg(feature = "axum")]
pub use self::request_decision::RequestDecision;
pub use self::response::{HeaderStyle, Reason, Refusal, Refused, Reset};
#[cfg(feature = "throttle")]
pub use self::throttle::ThrottleLayer;
pub use tower_quota_core::{
    Algorithm, BoxStore, ConfigError, Decision, Key, LimitStatus, Limiter, MemoryStore, Name,
    Outcome, Penalty, Quota, RefusalCache, Store,
};
#[cfg(feature = "lease")]
pub use tower_quota_lease::{Leased, Regional};
#[cfg(feature = "redis")]
pub use tower_quota_redis::RedisStore;

/// Types for stores of your own, and the figures and errors of stores.
pub mod store {
    pub use crate::store_call::StoreTimeout;
    pub use tower_quota_core::{
        BoxStoreError, Charge, Clock, Entry, Left, MemoryStats, MonotonicClock, Operation,
        Overloaded, OwnedCharge, RefusalFuture, RefusalStats, Timestamp, decide,
    };
}

/// Types of a [`Limiter`].
pub mod limiter {
    pub use tower_quota_core::{Answer, AsKey, NotReady, Turn, UnknownLimit};
}

/// Options and figures of [`Leased`] and [`Regional`].
#[cfg(feature = "lease")]
pub mod lease {
    pub use tower_quota_lease::{LeaseOptions, LeaseStats, RegionShares, RegionSharesError};
}

/// Options, figures and errors of a [`RedisStore`].
#[cfg(feature = "redis")]
pub mod redis {
    #[cfg(feature = "credentials")]
    pub use tower_quota_redis::Credentials;
    pub use tower_quota_redis::{
        RedisConfigError, RedisConnection, RedisErrorCounts, RedisOptions, RedisStats,
        RedisStoreError,
    };
}
