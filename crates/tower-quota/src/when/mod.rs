//! Conditions on requests, for limits and for the lists of a policy.
//!
//! Give conditions to [`Policy::allow`](crate::Policy::allow), [`block`](crate::Policy::block) and
//! [`skip`](crate::Policy::skip), and to [`Limit::when`](crate::Limit::when) and [`unless`](crate::Limit::unless). Closures on
//! the [head](crate::RequestHead) of a request are conditions too.
//!
//! | condition | matches requests |
//! |---|---|
//! | [`method`] | with one of these methods; `GET` includes `HEAD` |
//! | [`path`], `route` (feature `axum`) | for a path such as `/users/{id}`, or for a matched route |
//! | [`host`] | for a host, or for all hosts under a domain |
//! | [`grpc_service`], [`grpc_method`] | for a gRPC service or method |
//! | [`address_in`], [`key_in`] | from a network, or with one of these keys |
//! | [`cors_preflight`] | that are CORS preflight requests of browsers |
//! | [`not`], [`any`], [`every`] | that a condition does not match, one of several matches, all match |
//!
//! ```
//! use tower_quota::{Limit, Policy, Quota, key, when};
//!
//! let login = Limit::new("login", Quota::per_minute(5)).by(key::client_ip()).when(when::path("/login"));
//! let policy = Policy::new().limit(login);
//! # let _ = policy;
//! ```
//!
//! Customised:
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
//!             .unless(when::method([Method::GET]))
//!             .when(|head| head.headers().contains_key("x-api-key")),
//!     );
//! # let _ = policy;
//! ```
//!
//! # Caveats
//!
//! * **Patterns are as strict as routers.** `/Login`, `/login/` and `/%6Cogin` are not `/login`. If your service accepts more
//!   spellings, let the limit cover everything except the paths that you know to be cheap.
//! * **Compare the values that your server uses.** gRPC servers choose the method by the path, so a client could evade a
//!   condition on the content type.
//! * **Conflicting values** match [`key_in`] and [`host`] only where that is the safe answer. A closure that negates a
//!   condition by `!` loses this: use [`not`].

mod address;
mod condition;
mod http;
mod key;

pub use self::address::{address_in, try_address_in, try_network_range};
pub use self::condition::{Condition, PatternError, any, every, not};
#[cfg(feature = "axum")]
pub use self::http::route;
pub use self::http::{
    cors_preflight, grpc_method, grpc_service, host, method, path, try_grpc_method,
    try_grpc_service, try_host, try_path,
};
pub use self::key::key_in;
