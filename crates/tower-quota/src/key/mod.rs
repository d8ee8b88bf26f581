//! Key extractors: they read from a request the [`Key`](crate::Key) that a limit counts by.
//!
//! An extractor decides four things:
//!
//! 1. **Where the key is read**, and which notations of a value are the same key.
//! 2. **When the key is missing.** An empty key is missing. The limit chooses what happens: [`MissingKey`](crate::MissingKey).
//! 3. **What conflicting values mean**, such as a header with two values. A limit that refuses requests without a key refuses
//!    such requests too. Otherwise they share one counter.
//! 4. **The scope of the keys**, a name for the kind of client. The same text in two scopes is two keys.
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
//! | extractor | counts by | scope of `"x"` |
//! |---|---|---|
//! | [`client_ip`] | the client's address, IPv6 by its /64, also [behind proxies](ClientIp::behind) | `ip`; `ip of x-forwarded-for /48 v4/24` |
//! | [`header()`], [`cookie`] | the value of a header or a cookie | `header x`, `cookie x` |
//! | [`bearer`], [`basic_user`] | a bearer token, the user of Basic authentication | `bearer token`, `basic user` |
//! | `jwt_claim` (feature `jwt`) | a claim of a verified token | `jwt claim x of bearer token` |
//! | `unverified_jwt_claim` (feature `jwt`) | a claim of a token that an outer layer has verified | `unverified jwt claim x of bearer token` |
//! | `route`, `path_parameter` (feature `axum`) | the pattern of the matched route, or a parameter of the route | `route`, `path parameter x` |
//! | [`path`], [`path_segment`], [`query`] | the path, a segment of the path, a parameter of the query | `path`, `path segment 0`, `query x` |
//! | [`host`], [`method`] | the requested host, the request's method | `host`, `method` |
//! | [`grpc_service`], [`grpc_method`] | the gRPC service `pkg.Service`, or method `pkg.Service/Method` | `grpc service`, `grpc method` |
//! | [`metadata`] | a value of gRPC metadata | `metadata x` |
//! | [`extension()`] | a value that an outer layer has attached | `extension x` |
//! | [`from_fn`] | a value that a closure reads from the request | `fn x` |
//! | [`everyone`] | all requests together, in one counter | `everyone` |
//! | [`all`](all()) | several keys together; missing if a part is | `(ip + method)` |
//! | [`first_of`](first_of()), `a.or(b)` | the first key that is not missing | the scope of the part |
//!
//! To peek at, reset or block a client, give a [`RateLimitHandle`](crate::RateLimitHandle) a request of the client, or the
//! text of its key. Extractors also have a method `key_of`, such as [`ValueKey::key_of`] and [`ClientIp::key_of`].
//!
//! # Caveats
//!
//! * **Clients make up values.** Extractors do not check that you issued a value: limit by address too.
//! * **All extractors run before the limits are decided**, so refused requests pay for them too. The extractors of this
//!   module take less than a microsecond each, except `jwt_claim`, which shows how an outer layer refuses floods first.
//! * **Keys may be secrets.** `Debug` of extractors and keys does not show them, and stores keep digests.
//! * **Limits whose extractors share a scope count the same key**, which the first extractor reads once per request. A policy
//!   [refuses](crate::ConfigError::SharedScope) different extractors of one scope, such as two closures of one name. Names
//!   that you build at run time stay in memory until the process ends.
//!
//! # Customised: chosen at run time
//!
//! `Box<dyn KeyExtractor>` is a [`KeyExtractor`] too, so a configuration can choose. A [`ValueKey`] parses from text:
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
mod mistake;
mod parts;
mod place;
mod target;
mod text;
mod value;

pub use self::all::{All, MAX_SENT_KEYS, all};
pub use self::authorization::{basic_user, bearer};
pub use self::client_ip::{ClientIp, Proxies, Source, client_ip};
pub(crate) use self::client_ip::{Networks, forwarding_header, network};
pub(crate) use self::custom::CLOSURE_MARK;
pub use self::custom::{ClosureKey, EveryoneKey, everyone, extension, from_fn};
pub use self::extractor::KeyExtractor;
pub use self::first_of::{FirstOf, first_of};
pub use self::grpc::{grpc_method, grpc_service, metadata, try_metadata};
pub use self::header::{cookie, header, try_header};
pub(crate) use self::inspect::{identity, mistake};
#[cfg(feature = "jwt")]
pub use self::jwt::{InvalidJwtKey, JwtClaim, JwtKey, jwt_claim, unverified_jwt_claim};
#[cfg(feature = "axum")]
pub use self::matched::{path_parameter, route};
pub(crate) use self::mistake::Mistake;
pub use self::parts::IntoExtractors;
pub(crate) use self::target::host_of;
pub use self::target::{host, method, path, path_segment, query};
pub use self::text::KeyTextError;
pub use self::value::ValueKey;
pub(crate) use self::value::is_conflict;
