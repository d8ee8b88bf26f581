//! Conditions on requests, for limits and policies.
//!
//! Pass conditions to [`Policy::allow`](crate::Policy::allow), [`block`](crate::Policy::block),
//! [`skip`](crate::Policy::skip), [`Limit::when`](crate::Limit::when) and [`unless`](crate::Limit::unless). Closures on
//! the [head](crate::RequestHead) work too.
//!
//! | condition | matches |
//! |---|---|
//! | [`method`] | methods; `GET` includes `HEAD` |
//! | [`path`], [`host`], `route` (feature `axum`) | path pattern, host or domain, matched route |
//! | [`grpc_service`], [`grpc_method`] | gRPC calls |
//! | [`address_in`], [`key_in`] | networks, keys |
//! | [`cors_preflight`] | CORS preflights |
//! | [`not`], [`any`], [`every`] | combinations |
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
//! * **Patterns are strict**, like routers. `/Login`, `/login/` and `/%6Cogin` are not `/login`. If your service
//!   accepts more spellings, limit everything except cheap paths.
//! * **gRPC servers choose by path**, so clients could evade a condition on the content type.
//! * **Conflicting values** match [`key_in`] and [`host`] on the safe side. Negate with [`not`], not with `!`.

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
