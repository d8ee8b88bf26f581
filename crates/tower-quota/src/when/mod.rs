//! Which requests: conditions for limits and for the lists of a policy.
//!
//! A condition decides one of these:
//!
//! 1. whether a limit [applies](crate::Limit::when), or [does not](crate::Limit::unless);
//! 2. whether a request is not counted at all: [`Policy::skip`](crate::Policy::skip);
//! 3. whether a client is [allowed](crate::Policy::allow) or [blocked](crate::Policy::block).
//!
//! | condition | holds of requests |
//! |---|---|
//! | [`method`] | with one of these methods |
//! | [`path`] | whose path matches a pattern, such as `/users/{id}` |
//! | `route` (feature `axum`) | that axum has matched to this route |
//! | [`host`] | for this host, or for every host under a domain |
//! | [`grpc_service`], [`grpc_method`] | that call this gRPC service or method |
//! | [`address_in`] | from clients whose address is in one of these networks |
//! | [`key_in`] | with one of these keys |
//! | [`cors_preflight`] | that are CORS preflight requests of browsers |
//! | [`not`], [`any`], [`every`] | of which others do not hold, one does, all do |
//!
//! A closure on the [head](crate::RequestHead) of a request is a condition too.
//!
//! ```
//! use http::Method;
//! use tower_quota::{Limit, Policy, Quota, key, when};
//!
//! let policy = Policy::new()
//!     .skip(when::any([when::path("/healthz"), when::cors_preflight()]))
//!     .block(when::address_in(key::client_ip(), ["203.0.113.0/24", "2001:db8:bad::/48"]))
//!     .limit(Limit::new("all", Quota::per_minute(600)).by(key::client_ip()))
//!     .limit(
//!         Limit::new("writes", Quota::per_minute(60))
//!             .by(key::client_ip())
//!             .unless(when::method([Method::GET, Method::HEAD]))
//!             .when(|head| head.headers().contains_key("x-api-key")),
//!     );
//! # let _ = policy;
//! ```
//!
//! # Caveats
//!
//! * **Patterns are as strict as routers.** A [path] is compared as it was sent: `/Login`, `/login/` and `/%6Cogin` are not
//!   `/login`, and not for axum's router either. If the service behind is more forgiving, let the limit cover more, for
//!   instance everything but what you know to be cheap, so that no spelling leads past it.
//! * **Count by what the server acts on**, not by what the client says of itself: gRPC servers choose the method by the
//!   path, so a condition on the content type is bypassed by another content type.
//! * **Conflicting values** are listed for [`key_in`] where that is the safe side, see there. A closure that negates a
//!   condition by `!` loses this: use [`not`].

mod address;
mod condition;
mod http;
mod key;

pub use self::address::{address_in, try_address_in};
pub use self::condition::{Condition, PatternError, any, every, not};
#[cfg(feature = "axum")]
pub use self::http::route;
pub use self::http::{
    cors_preflight, grpc_method, grpc_service, host, method, path, try_grpc_method, try_grpc_service, try_host,
    try_path,
};
pub use self::key::key_in;
