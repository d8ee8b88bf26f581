//! Rate limiting for Axum, tonic and any tower service: several limits decided in one atomic step.
//!
//! ```
//! use axum::{Router, routing::get};
//! use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};
//!
//! let policy = Policy::new()
//!     .limit(Limit::new("burst", Quota::per_second(10).burst(20)).by(key::client_ip()))
//!     .limit(Limit::new("minute", Quota::per_minute(100)).by(key::header("x-api-key").or(key::client_ip())))
//!     .limit(Limit::new("everyone", Quota::per_second(5_000)));
//!
//! let app: Router = Router::new()
//!     .route("/", get(|| async { "hello" }))
//!     .layer(RateLimitLayer::new(MemoryStore::new(), policy));
//! ```
//!
//! # What happens to a request
//!
//! 1. Whom the policy [allows](Policy::allow) and what it [skips](Policy::skip) goes to the inner service uncounted; whom
//!    it [blocks](Policy::block) is refused with 403.
//! 2. What limits need and the request does not say is [looked up](Policy::look_up), up to a deadline.
//! 3. Each limit that [applies](Limit::when) reads its [key] from the [head](RequestHead) of the request. Limits
//!    counted by the same thing share one key. Where a key is missing, the limit [decides](MissingKey): the request
//!    shares a counter, is not counted, or is refused with 400. A limit may let the request choose its
//!    [quota](Limit::quota_with).
//! 4. If no limit applies, the inner service is called and the store is not asked.
//! 5. The store decides all limits in one step: every one is charged, or none is. But for look-ups this is the only wait
//!    before the handler, and with a [`MemoryStore`] it is none.
//! 6. Refused, the request is answered by the [`Refusal`]: 429 and, unless told otherwise, [what the client likes
//!    best](Negotiated) of problem details, plain text and HTML. gRPC requests are answered `RESOURCE_EXHAUSTED` in a
//!    Trailers-Only response, with the details by which clients know when to retry.
//! 7. Admitted, it goes to the inner service, after its [wait](Limit::max_wait) if a leaky bucket gave it a later turn.
//!    No more than [so many](RateLimitLayer::max_waiting) wait at once, and who goes away gives the turn back.
//! 8. The response carries `RateLimit` and `RateLimit-Policy`, or what other [styles](HeaderStyle) were chosen; a refusal
//!    also `Retry-After`. Handlers and outer layers find the [`Decision`] in the extensions, where
//!    [they are to](RateLimitLayer::attach_decision).
//! 9. Where a limit [settles](Limit::settle), what the request turned out to cost is put right afterwards: see [`settle`].
//!
//! Steps that a policy does not ask for cost nothing. Whoever keeps metrics hears of every decision:
//! [`RateLimitLayer::on_decision`].
//!
//! A store that cannot be asked never becomes an error of the service, see [below](#when-the-store-is-sick).
//!
//! # What clients are told
//!
//! | field | on an admitted request | on a refused one |
//! |---|---|---|
//! | `RateLimit-Policy` | `"burst";q=20;w=2`: each limit's capacity, and the seconds an empty one takes to be whole | the same |
//! | `RateLimit` | `"burst";r=19;t=1`: units left, and seconds until the limit is whole | the refusing limits; `t` is when this request would pass |
//! | `Retry-After` | | seconds until this request would pass, never 0; absent when it never would |
//!
//! All seconds are rounded up. The first two follow draft-ietf-httpapi-ratelimit-headers-11. A client who spreads `r`
//! units over `t` seconds is always admitted, if nobody else is counted by his key: they are there already.
//!
//! Other fields, such as `X-RateLimit-*`, for clients of other limiters, are a matter of [`RateLimitLayer::headers`]. Refused clients come back
//! at different times with [`RateLimitLayer::retry_jitter`]. Every kind of answer, in each protocol, is in the table of
//! `docs/ANSWERS.md`.
//!
//! # When the store is sick
//!
//! A shared store may be away, slow or full. Each limit [says](Limit::on_store_failure) what that means for requests it
//! applies to, and the policy says it for limits that do not:
//!
//! | [`OnStoreFailure`] | a request | because |
//! |---|---|---|
//! | `Allow`, the default | goes ahead, uncounted | a limiter must not take the service down |
//! | `Refuse` | is refused: 503, `UNAVAILABLE` for gRPC, with `Retry-After` | uncounted would be worse than unserved |
//! | `Local` | is counted by this instance alone | what stands behind the service needs protection all the while |
//!
//! One limit that says `Refuse` refuses the request. Otherwise its `Local` limits are decided together, all or none, by
//! this instance's share of their quotas: divided by the expected [number of instances](Policy::instances). Keys, costs
//! and conditions are worked out anew for this, by the same closures. What was counted locally is dropped when the
//! store is well again.
//!
//! Whoever is on call should hear of it: [`RateLimitLayer::on_store_error`] is handed every such error, whatever the
//! limits do. Without it, limits that allow are silent.
//!
//! A public API whose backend must never see more than it can bear, and its login page, where guessing passwords must
//! not become free when Redis is down:
//!
//! ```
//! use std::time::Duration;
//! use tower_quota::{Limit, OnStoreFailure, Policy, Quota, key};
//!
//! let policy = Policy::new()
//!     .limit(Limit::new("minute", Quota::per_minute(600)).by(key::header("x-api-key")))
//!     .limit(
//!         Limit::new("login", Quota::new(5, Duration::from_secs(900)).sliding_log())
//!             .by(key::client_ip())
//!             .when(|head| head.uri().path() == "/login")
//!             .on_store_failure(OnStoreFailure::Refuse),
//!     )
//!     .on_store_failure(OnStoreFailure::Local)
//!     .instances(6);
//! # let _ = policy;
//! ```
//!
//! Such an answer is marked `X-RateLimit-Policy: degraded` and has no `RateLimit` nor `RateLimit-Policy` field: those
//! speak of the whole quota. Where the [style](HeaderStyle::XRateLimit) is chosen, `X-RateLimit-Limit`, `-Remaining` and
//! `-Reset` tell the local share; where nothing was counted, `X-RateLimit-Remaining` is `-1` and the others are left out.
//! Handlers find [`Degraded`] in the request's
//! extensions, and so does whoever reads the response's.
//!
//! # Customised
//!
//! The store is picked at run time, one limit counts by what an outer layer has found out, costs differ, bulk uploads
//! take turns, refusals are plain text, and a handler reads what is left:
//!
//! ```
//! use axum::{Extension, Router, routing::get};
//! use http::Method;
//! use std::time::Duration;
//! use tower_quota::{
//!     BoxStore, Decision, Limit, MemoryStore, MissingKey, OnStoreFailure, Policy, Quota, RateLimitLayer, key,
//! };
//!
//! #[derive(Clone)]
//! struct Tenant(String);
//!
//! let policy = Policy::new()
//!     .limit(
//!         Limit::new("tenant", Quota::per_hour(1_000))
//!             .by(key::from_fn("tenant", |head| Some(head.extensions().get::<Tenant>()?.0.clone())))
//!             .when_missing(MissingKey::Refuse)
//!             .cost_with(|head| if head.uri().path() == "/search" { 10 } else { 1 }),
//!     )
//!     .limit(
//!         Limit::new("uploads", Quota::per_second(2).burst(50).leaky_bucket())
//!             .when(|head| head.method() == Method::PUT)
//!             .max_wait(Duration::from_secs(5)),
//!     )
//!     .on_store_failure(OnStoreFailure::Refuse);
//!
//! let layer: RateLimitLayer<BoxStore> = RateLimitLayer::new(BoxStore::new(MemoryStore::new()), policy)
//!     .on_refused(|refused| {
//!         let mut response = http::Response::new(refused.detail());
//!         *response.status_mut() = refused.status();
//!         response
//!     })
//!     .attach_decision();
//!
//! // Optional: where no limit applies, or the store failed and its limits allow, there is no decision, and a plain
//! // `Extension<Decision>` would answer 500.
//! async fn left(decision: Option<Extension<Decision>>) -> String {
//!     let Some(Extension(decision)) = decision else { return String::from("not counted") };
//!     decision.statuses().iter().map(|limit| format!("{}: {}\n", limit.name, limit.remaining())).collect()
//! }
//!
//! let app: Router = Router::new().route("/left", get(left)).layer(layer);
//! ```
//!
//! # Caveats
//!
//! * **Peer addresses.** [`key::client_ip`] needs the feature `axum` or `tonic`, and an axum app must be served with
//!   `into_make_service_with_connect_info::<SocketAddr>()`. Without an address all clients share one counter, and the
//!   log says so once, through `tracing`. Behind a proxy the peer is the proxy, until
//!   [`ClientIp::behind`](key::ClientIp::behind) says whom to believe.
//! * **`layer` or `route_layer`.** `Router::layer` covers the routes added before it and the fallback: a scan that hits
//!   404s is counted. `Router::route_layer` covers matched routes only: 404s are free.
//! * **Matched routes.** `key::route()` sees the whole pattern under `nest`, and nothing in fallbacks or around a whole
//!   app.
//! * **CORS.** Put `CorsLayer` outside this layer, so that refusals carry its headers and preflight requests are
//!   answered before they are counted, and expose the [`exposed_headers`].
//! * **Nested layers** each decide by themselves: what an outer one has charged stays charged when an inner one refuses.
//!   Limits that belong together belong in one policy.
//! * **Names** tell counters apart. Limits of one name that count the same key in one store share one counter, across
//!   layers, policies, and services with the same Redis prefix: [name them apart](Limit::new), as `login-minute`, unless
//!   that is wanted. If their quotas differ, they keep converting each other's counters.
//! * **Combined keys** are missing when [one part](key::all) is: by default everybody without an API key shares one
//!   counter, whatever the address.
//! * **The service must be `Clone`**, since it is called after the store has answered. Those of axum and tonic are; put
//!   others behind a `Buffer` of tower, inside this layer.
//! * **Waiting** needs a tokio runtime with its timer, and holds the request meanwhile. A turn that is given back goes to
//!   whoever asks next: he may then come together with the last who waits, since those who wait keep their turns.
//! * **Clients that go away** before the store has answered may have been charged. Only limits that settle or make
//!   requests wait give it back.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `axum` | `key::route`, `key::path_parameter`, `when::route`; peer addresses from axum's `ConnectInfo`; `settle::Reservation` as an extractor |
//! | `tonic` | peer addresses from tonic's `TcpConnectInfo` |
//! | `jwt` | `key::jwt_claim`, for applications that have picked a crypto backend of the crate `jsonwebtoken` |
//! | `jwt-rust-crypto` | `jwt`, and that crate's backend `rust_crypto` |
//! | `redis` | `RedisStore`, which instances share, with its options and errors |
//! | `tls` | `redis`, and `rediss://` URLs |

#![forbid(unsafe_code)]

mod clients;
pub mod cost;
mod decided;
mod degraded;
mod handle;
mod head;
pub mod key;
mod layer;
mod limit;
mod policy;
mod protocol;
mod response;
pub mod settle;
mod valid;
pub mod when;

pub use self::clients::RefusedClient;
pub use self::decided::Decided;
pub use self::degraded::{Degraded, OnStoreFailure};
pub use self::handle::{ClientKey, HandleError, RateLimitHandle};
pub use self::head::RequestHead;
pub use self::layer::{RateLimit, RateLimitLayer, ResponseBody, ResponseFuture, StoreTimeout};
pub use self::limit::{Limit, MissingKey};
pub use self::policy::Policy;
pub use self::protocol::Protocol;
pub use self::response::{
    CustomStyle, GrpcStatus, HeaderReport, HeaderStyle, LimitInfo, LimitReport, Negotiated, ProblemDetails, Reason,
    Refusal, RefusalBody, Refused, Reset, WriteHeaders, exposed_headers,
};
pub use tower_quota_core::{
    Algorithm, Answer, AsKey, BoxStore, BoxStoreError, Charge, Clock, ConfigError, Decision, Entry, Key, Left,
    LimitStatus, Limiter, MemoryStats, MemoryStore, MonotonicClock, Name, NotReady, Operation, Outcome, Penalty, Quota,
    Store, Timestamp, UnknownLimit, decide,
};
#[cfg(feature = "redis")]
pub use tower_quota_redis::{
    RedisConfigError, RedisErrorCounts, RedisOptions, RedisStats, RedisStore, RedisStoreError,
};
