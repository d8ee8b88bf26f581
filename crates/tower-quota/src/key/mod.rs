//! Key extractors: they read from a request the [`Key`](crate::Key) that a limit counts by.
//!
//! An extractor decides four things:
//!
//! 1. **Where the key is read**, and which notations of a value are the same key.
//! 2. **When the key is missing.** An empty key is missing. The limit chooses what happens then:
//!    [`MissingKey`](crate::MissingKey).
//! 3. **What conflicting values mean**, if a request sends different values in a place for one. A limit that refuses
//!    requests without a key refuses such requests too. Otherwise they share one counter. Block lists check [each
//!    value](KeyExtractor::each_key).
//! 4. **The scope of the keys**, a name for the kind of client. The same text in two scopes is two keys.
//!
//! ```
//! use tower_quota::{Limit, Policy, Quota, key};
//!
//! let policy = Policy::new()
//!     // Each client by its address.
//!     .limit(Limit::new("minute", Quota::per_minute(100)).by(key::client_ip()))
//!     // Each client by its API key. A made-up key gets a counter of its own, which the first limit bounds.
//!     .limit(Limit::new("hour", Quota::per_hour(1_000)).by(key::header("x-api-key").or(key::client_ip())))
//!     // Each address on each route.
//!     .limit(Limit::new("burst", Quota::per_second(10)).by(key::all((key::client_ip(), key::path_segment(0)))));
//! # let _ = policy;
//! ```
//!
//! | extractor | counts by | missing when | scope of `"x"` |
//! |---|---|---|---|
//! | [`client_ip`] | the client's address, IPv6 by its /64; [behind proxies](ClientIp::behind) too | the server attached no address | `ip`; `ip of x-forwarded-for /48 v4/24` |
//! | [`header()`] | a header's value | absent or empty | `header x` |
//! | [`bearer`] | a bearer token | not sent | `bearer token` |
//! | [`basic_user`] | the user of Basic authentication | not sent, or unreadable | `basic user` |
//! | `jwt_claim` (feature `jwt`) | a claim of a verified token | not sent, invalid, or without the claim | `jwt claim x of bearer token` |
//! | `unverified_jwt_claim` (feature `jwt`) | a claim of a token that an outer layer has verified | not sent, or without the claim | `unverified jwt claim x of bearer token` |
//! | [`cookie`] | a cookie's value, decoded | absent or empty | `cookie x` |
//! | [`query`] | a parameter of the query, decoded | absent or empty | `query x` |
//! | `route` (feature `axum`) | the pattern of the matched route | no route has matched | `route` |
//! | `path_parameter` (feature `axum`) | a parameter of the matched route, decoded | no route has matched, or the route has no such parameter | `path parameter x` |
//! | [`path_segment`] | a segment of the path, decoded | the path is shorter | `path segment 0` |
//! | [`path`] | the path, decoded | the target has none | `path` |
//! | [`host`] | the requested host | not sent | `host` |
//! | [`method`] | the request's method | never | `method` |
//! | [`grpc_service`], [`grpc_method`] | the gRPC service `pkg.Service`, or method `pkg.Service/Method` | the path has one segment | `grpc service`, `grpc method` |
//! | [`metadata`] | a value of gRPC metadata, `-bin` decoded | absent, empty or unreadable | `metadata x` |
//! | [`extension()`] | a value that an outer layer has attached | not attached, or the closure returns `None` | `extension x` |
//! | [`from_fn`] | a value that a closure reads from the request | the closure returns `None` | `fn x` |
//! | [`everyone`] | all requests together: one counter | never | `everyone` |
//! | [`all`](all()) | several keys together | a part is missing | `(ip + method)` |
//! | [`first_of`](first_of()), `a.or(b)` | the first key that is not missing | all parts are missing | the scope of the part; `(header x or ip)` when missing |
//!
//! To peek at, reset or block a client, give a [`RateLimitHandle`](crate::RateLimitHandle) a request of the client, or the
//! text of its key, which [`KeyExtractor::parse`] reads. Extractors also have a method `key_of`, such as
//! [`ValueKey::key_of`], [`ClientIp::key_of`] and [`All::key_of`].
//!
//! # Caveats
//!
//! * **Clients make up values**, and different ones each time. Extractors do not check that you issued a value: check
//!   values elsewhere, and limit by address too, so that made-up values gain nothing.
//! * **All extractors run before the limits are decided**, so refused requests pay for them too. The extractors of this
//!   module take less than a microsecond each, except `jwt_claim`, which verifies a signature. Let an outer layer that
//!   counts by [`client_ip`] alone refuse floods first; `jwt_claim` shows how.
//! * **Keys may be secrets.** `Debug` of extractors and keys does not show them, and stores keep digests.
//! * **Limits whose extractors share a scope count the same key.** Within a policy the first such extractor runs once
//!   per request, for all of these limits. A policy [refuses](crate::ConfigError::SharedScope) different extractors of
//!   one scope, such as two closures of one name. Names that you build at run time stay in memory until the process ends.
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
pub use self::first_of::{FirstOf, KeyExtractorExt, first_of};
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
