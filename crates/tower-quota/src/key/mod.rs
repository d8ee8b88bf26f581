//! Extractors read the [`Key`](crate::Key) by which a limit counts a request.
//!
//! If the value is absent or empty, the limit's [`MissingKey`](crate::MissingKey) decides. A limit that refuses missing
//! keys also refuses conflicting values, like two API keys. Other limits count all conflicting requests together.
//!
//! A key has a scope, like `header x-api-key`. The same text in two scopes makes two keys.
//!
//! ```
//! use tower_quota::{Limit, Policy, Quota, key};
//!
//! let policy = Policy::new()
//!     // Each client by its address.
//!     .limit(Limit::new("minute", Quota::per_minute(100)).by(key::client_ip()))
//!     // Each client by its API key. The first limit bounds made-up keys.
//!     .limit(Limit::new("hour", Quota::per_hour(1_000)).by(key::header("x-api-key").or(key::client_ip())))
//!     // Each address on each route.
//!     .limit(Limit::new("burst", Quota::per_second(10)).by(key::all((key::client_ip(), key::path_segment(0)))));
//! # let _ = policy;
//! ```
//!
//! | extractor | counts by |
//! |---|---|
//! | [`client_ip`] | address, IPv6 by /64, also [behind proxies](ClientIp::behind) |
//! | [`header()`], [`cookie`], [`query`] | header, cookie, query parameter |
//! | [`bearer`], [`basic_user`] | token or user in `Authorization` |
//! | `jwt_claim`, `unverified_jwt_claim` (feature `jwt`) | claim of a token |
//! | `route`, `path_parameter` (feature `axum`) | matched route, or a parameter |
//! | [`path`], [`path_segment`], [`host`], [`method`] | path, segment, host, method |
//! | [`grpc_service`], [`grpc_method`], [`metadata`] | gRPC service, method, metadata |
//! | [`extension()`], [`from_fn`] | your own value |
//! | [`everyone`] | all requests together |
//! | [`all`](all()), [`first_of`](first_of()) | several keys together, or the first present key |
//!
//! To peek at, reset or block a client, use a [`RateLimitHandle`](crate::RateLimitHandle).
//!
//! # Caveats
//!
//! * **Clients make up values**, which get new counters. Limit by address too.
//! * **Extractors run before the limits**, and mostly take less than a microsecond. See `jwt_claim` for the exception.
//! * **Keys may be secrets.** `Debug` output hides keys, and stores keep digests.
//! * **Limits with one scope share a key.** A policy [refuses](crate::ConfigError::SharedScope) different extractors
//!   with one scope, like two closures with one name.
//! * **Names built at run time** stay in memory.
//!
//! # Customised: chosen at run time
//!
//! Box an extractor, or parse a [`ValueKey`]:
//!
//! ```
//! use tower_quota::{Limit, Quota, key};
//!
//! # let by = "header x-api-key";
//! let extractor: Box<dyn key::KeyExtractor> = match by {
//!     "client_ip" => Box::new(key::client_ip()),
//!     text => Box::new(text.parse::<key::ValueKey>()?),
//! };
//! let limit = Limit::new("minute", Quota::per_minute(100)).by(extractor);
//! # let _ = limit;
//! # Ok::<(), key::KeyTextError>(())
//! ```

mod all;
mod authorization;
mod client_ip;
mod custom;
mod extractor;
mod first_of;
mod grpc;
mod header;
mod inspect;
#[cfg(feature = "jwt")]
mod jwt;
#[cfg(feature = "axum")]
mod matched;
mod missing_part;
mod mistake;
pub(crate) mod named;
mod parts;
mod target;
mod text;
mod values;

pub use self::all::{All, MAX_SENT_KEYS, all};
pub use self::client_ip::{ClientIp, Proxies, Source, client_ip};
pub(crate) use self::client_ip::{Networks, forwarding_header, network};
pub use self::custom::{ClosureKey, EveryoneKey, everyone, extension, from_fn};
pub use self::extractor::KeyExtractor;
pub use self::first_of::{FirstOf, first_of};
pub(crate) use self::inspect::{identity, is_everyone, lacks_address};
#[cfg(feature = "jwt")]
pub use self::jwt::{InvalidJwtKey, JwtClaim, JwtKey, jwt_claim, unverified_jwt_claim};
pub use self::missing_part::MissingPart;
pub(crate) use self::mistake::Mistake;
pub use self::parts::IntoExtractors;
pub(crate) use self::target::host_of;
pub use self::text::KeyTextError;
pub(crate) use self::values::is_conflict;
pub use self::values::{
    ValueKey, basic_user, bearer, cookie, grpc_method, grpc_service, header, host, metadata,
    method, path, path_segment, query, try_header, try_metadata,
};
#[cfg(feature = "axum")]
pub use self::values::{path_parameter, route};
