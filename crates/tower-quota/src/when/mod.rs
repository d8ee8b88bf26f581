//! Which requests: conditions for [`Limit::when`](crate::Limit::when) and [`unless`](crate::Limit::unless), and for
//! [`Policy::skip`](crate::Policy::skip), [`allow`](crate::Policy::allow) and [`block`](crate::Policy::block).
//!
//! | condition | holds of requests |
//! |---|---|
//! | [`method`] | with one of these methods |
//! | [`path`] | whose path matches a pattern, such as `/users/{id}` |
//! | `route` (feature `axum`) | that axum has matched to this route |
//! | [`host`] | for this host, or for every host under a domain |
//! | [`address_in`] | from clients whose address is in one of these networks |
//! | [`key_in`] | with one of these keys |
//! | [`cors_preflight`] | with which browsers ask whether they may ask |
//! | [`grpc`] | that are gRPC or gRPC-Web calls |
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
//! # Patterns are as strict as routers
//!
//! A [path] is compared as it was sent: `/Login`, `/login/` and `/%6Cogin` are not `/login`. They are not for
//! axum's router either. Where what stands behind is more forgiving, let the limit cover more, for instance everything
//! but what you know to be cheap, so that no spelling leads past it.

mod address;
mod condition;
mod cors;
mod error;
mod grpc;
mod host;
mod key;
mod method;
mod networks;
mod path;
#[cfg(feature = "axum")]
mod route;

pub use self::address::{address_in, try_address_in};
pub use self::condition::{Condition, any, every, not};
pub use self::cors::cors_preflight;
pub use self::error::PatternError;
pub use self::grpc::grpc;
pub use self::host::{host, try_host};
pub use self::key::key_in;
pub use self::method::method;
pub use self::path::{path, try_path};
#[cfg(feature = "axum")]
pub use self::route::route;
