//! Rate limiting for Axum, tonic and any tower service, with several limits for each request.
//!
//! In memory and on one Redis server, the store decides all limits of a request in one atomic step.
//! A Redis Cluster takes one step for each key, and refunds the earlier steps when a later one refuses.
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
//! A limit without `fixed_window()` is a bucket, which refills while clients use it. In the first period, a bucket admits
//! up to twice the quota, or its `burst` and the refill.
//!
//! # Guides
//!
//! | guide | content |
//! |---|---|
//! | Coming from [governor], [tower_governor], [express-rate-limit], [limitador or Envoy], [nginx] | equivalents and differences |
//! | [All choices](guide::recipes), [where to put limits](guide::where_to_put_limits) | what to write for what you want, and where |
//! | [Plans and usage](guide::plans_and_usage) | calendar months, usage, a warning at 80 %, more units |
//! | [Behind a proxy](guide::behind_a_proxy) | trusted proxies, hops, IPv6 |
//! | [Nesting in Axum](guide::nesting_in_axum) | `layer` and `route_layer`, limits per route, the order of layers |
//! | [Why it is built this way](guide::why) | fail open, Redis, Lua, no owner of a key |
//! | [Choosing an algorithm](guide::choosing_an_algorithm) | admitted traffic, guarantees, costs |
//! | [Holds and soft limits](guide::holds_and_soft_limits) | requests in progress, challenges, tarpits, closed connections |
//! | [Shedding load](guide::shedding) | a service that protects itself, with priorities and fair shares |
//! | [Without HTTP](guide::without_http) | jobs, messages, calls to remote APIs |
//! | [Clients that retry](guide::clients) | `Retry-After`, jitter, and giving up in JavaScript, Python and Go |
//! | [gRPC](guide::grpc) | tonic servers, streams, both protocols in a service |
//! | [Operations and metrics](guide::operations) | peek, reset, grant, block, change quotas; metrics, logs; shutdown |
//! | [Outages](guide::outages) | fail open, fail closed, local counters; deadlines and the breaker |
//! | [Regions](guide::regions) | a quota for distant regions |
//! | [Leases](guide::leases) | hot clients decided in memory, with a total that never exceeds the quota |
//! | [Live rules](guide::live_rules) | documents that you change at run time, with versions, rollback and audit |
//! | [Admin](guide::admin) | rules, clients and blocks over HTTP |
//! | [Command line](guide::command_line) | check and compare rules, replay access logs, operate services |
//! | [Production checklist](guide::production_checklist), [upgrading](guide::upgrading) | before the first traffic, and before a new version |
//! | [Testing your limits](guide::testing_your_limits) | a clock that your tests move, a store that fails on command |
//! | A server for [Envoy](guide::server_with_envoy), [nginx](guide::server_with_nginx), [Caddy](guide::server_with_caddy), [other languages](guide::server_with_python) | limits for services that are not written in Rust |
//! | [Writing a store](guide::writing_a_store) | counters in another database |
//!
//! [governor]: guide::from_governor
//! [tower_governor]: guide::from_tower_governor
//! [express-rate-limit]: guide::from_express_rate_limit
//! [limitador or Envoy]: guide::from_limitador_or_envoy
//! [nginx]: guide::from_nginx
//!
//! # What happens to a request
//!
//! 1. The lists of the policy come first. [Allowed](Policy::allow) and [skipped](Policy::skip) requests pass uncounted.
//!    [Blocked](Policy::block) requests get 403.
//! 2. [Look-ups](Policy::look_up) find values that the request does not contain.
//! 3. Each limit that [applies](Limit::when) reads the [key], [quota](Limit::quota_with) and [cost](Limit::cost_with)
//!    from the request's [head](RequestHead). You choose what happens if a key is [missing](MissingKey).
//! 4. If no limit applies, the request goes to the inner service.
//! 5. The store decides all limits together, and charges all of them or none.
//! 6. [`on_refused`](RateLimitLayer::on_refused) answers refused requests with 429, or with `RESOURCE_EXHAUSTED` in gRPC.
//! 7. An admitted request goes to the inner service, after a [wait](Limit::max_wait) for a leaky bucket.
//! 8. The response gets the rate limit fields, and the [`Decision`] if [attached](RateLimitLayer::attach_decision).
//! 9. Limits that [settle](Limit::settle) correct the cost, and limits with [`Quota::concurrent`] release units.
//!
//! [Soft limits](Limit::over) flag or delay requests. Use [`RateLimitLayer::on_decision`] for metrics, and
//! [`RateLimitLayer::handle`] to peek, reset, grant, block, and replace the policy at run time.
//!
//! # What clients see
//!
//! | field | on an admitted request | on a refused request |
//! |---|---|---|
//! | `RateLimit-Policy` | `"burst";q=20;w=2`: capacity, and seconds to fill an empty limit | the same |
//! | `RateLimit` | `"burst";r=19;t=1`: remaining units, and seconds to spend them over | the refusing limits; `t` is the time until admission |
//! | `X-RateLimit-Limit`, `-Remaining`, `-Reset` | the tightest limit; the reset is a Unix timestamp | the refusing limit |
//! | `Retry-After` | | seconds until admission, never 0; absent if the request can never be admitted |
//!
//! Seconds are rounded up. The first two fields follow draft-ietf-httpapi-ratelimit-headers-11.
//! You can set other [styles](RateLimitLayer::headers), and spread [retries](RateLimitLayer::retry_jitter).
//! `docs/reference/answers.md` lists every response in each protocol.
//!
//! # When the store is unavailable
//!
//! Clients known to be over a limit stay refused. Other requests pass uncounted, unless you
//! [choose](Limit::on_store_failure) another [`OnStoreFailure`]. See the guide to [outages](guide::outages).
//!
//! # Customised
//!
//! A store chosen at run time, quotas by tenant, queued uploads, and a handler that reads the remaining units:
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
//! * **Mistakes are logged** through `tracing`, once, if only traffic shows a mistake in your configuration. See [`Check`],
//!   [`RateLimitHandle::mistakes`] and `docs/reference/mistakes.md`.
//! * **Peer addresses.** [`key::client_ip`] needs the feature `axum` or `tonic`. Serve an axum app with
//!   `into_make_service_with_connect_info::<SocketAddr>()`. Without an address the response is 500, unless you choose
//!   [otherwise](Limit::when_missing). [Behind a proxy](guide::behind_a_proxy), name the trusted proxies with
//!   [`ClientIp::behind`](key::ClientIp::behind).
//! * **The position of the layer** matters. `Router::layer` counts 404s, `Router::route_layer` does not, and `CorsLayer`
//!   belongs outside. See [nesting in Axum](guide::nesting_in_axum).
//! * **Names identify counters.** Limits with the same name, key and store share a counter. See [`Limit::new`].
//! * **Combined keys** are missing if [any part](key::all()) is missing. [`key::first_of`](key::first_of()) uses the first
//!   existing part.
//! * **The service must be `Clone` and `Send`**, because waiting requests go to a clone. Services of axum and tonic are
//!   both. Put a service that is not `Clone` behind tower's `Buffer`, inside the layer. Request bodies must be `Send`.
//! * **Waiting** needs a tokio runtime with a timer, and holds the request in memory. A cancelled request only frees the
//!   last turn of a leaky bucket, so turns keep their distance. Each key gets a
//!   [fair share](RateLimitLayer::max_waiting) of the places.
//! * **Clients that disconnect** before the store has answered may have been charged. Only limits that settle or make
//!   requests wait refund the charge.
//! * **Deadlines.** A [`RedisStore`] answers within 50 ms. Other stores have
//!   [5 seconds](RateLimitLayer::store_timeout), and need a tokio runtime with a timer unless they answer at once.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `axum` | `key::route`, `key::path_parameter`, `when::route`; peer addresses; extractors; axum responses as refusals |
//! | `tonic` | peer addresses of tonic servers; refusals in gRPC |
//! | `jwt` | `key::jwt_claim`, with a crypto backend of `jsonwebtoken` that you choose |
//! | `jwt-rust-crypto` | `jwt`, and the backend `rust_crypto` |
//! | `calendar` | `Quota::calendar`: days, weeks, months or years in a time zone |
//! | `redis` | `RedisStore`, a store that your instances share |
//! | `tls` | `redis`, and `rediss://` URLs |
//! | `pool` | `redis`, and `RedisOptions::pool` for a pool of `deadpool-redis` |
//! | `credentials` | `redis`, and `RedisOptions::credentials` for short-lived tokens |
//! | `throttle` | `ThrottleLayer`: your client's calls wait, obey the remote service, and are retried |
//! | `metrics` | `metrics`: counters, gauges and histograms for the crate `metrics` |
//! | `top` | `RateLimitHandle::top_refused` and `top_busy`, on with `tower-quota-live` |
//! | `lease` | `Leased`: hot clients in memory, within the quota of all instances; `Regional`: quotas for regions |
//!

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod checks;
mod clients;
pub mod cost;
mod degraded;
#[cfg(feature = "axum")]
mod extract;
#[cfg(any(doc, doctest))]
pub mod guide;
mod handle;
mod head;
pub mod key;
mod layer;
mod limit;
#[cfg(feature = "metrics")]
pub mod metrics;
mod observe;
pub mod policy;
mod protocol;
mod random;
mod request;
pub mod response;
pub mod settle;
#[cfg(feature = "throttle")]
pub mod throttle;
mod traced;
mod valid;
pub mod when;

pub use self::checks::{Check, ChecksReport};
#[cfg(feature = "top")]
pub use self::clients::{TopClient, TopWindow};
pub use self::degraded::{Degraded, OnStoreFailure, RecentOutage};
#[cfg(feature = "axum")]
pub use self::extract::RequestDecision;
pub use self::handle::{ClientKey, HandleError, RateLimitHandle};
pub use self::head::RequestHead;
pub use self::layer::{CloseConnection, RateLimit, RateLimitLayer, ResponseBody, ResponseFuture};
pub use self::limit::{Flagged, Limit, MissingKey, Over};
pub use self::observe::Decided;
pub use self::policy::Policy;
pub use self::protocol::Protocol;
pub use self::response::{HeaderStyle, Reason, Refused, Reset};
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

/// Types for your own stores, and the figures and errors of stores.
pub mod store {
    pub use crate::settle::store_call::StoreTimeout;
    pub use tower_quota_core::{
        BoxStoreError, Charge, Clock, Entry, Left, MemoryStats, MonotonicClock, Operation,
        Overloaded, OwnedCharge, RefusalCheck, RefusalFuture, RefusalStats, Timestamp, Undecidable,
        decide,
    };
}

/// Explanations of sample requests, for programs that show and test policies.
///
/// Get an [`Explainer`](explain::Explainer) from [`Policy::explainer`], or call [`RateLimitHandle::explain`].
pub mod explain {
    pub use crate::head::SampleContext;
    pub use crate::key::named::{NamedKey, named};
    pub use crate::policy::explain::Explainer;
    pub use crate::policy::explained::{Explained, ExplainedLimit};
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
        RedisConfigError, RedisErrorCounts, RedisLocator, RedisOptions, RedisStats, RedisStoreError,
    };
}
