//! Extractors read the [`Key`](crate::Key) by which a limit counts a request.
//!
//! If the value is absent or empty, the key is missing, and the limit's [`MissingKey`](crate::MissingKey) decides. If a
//! request has conflicting values, for example two API keys, a limit that refuses missing keys refuses the request. For
//! other limits, all conflicting requests share one counter.
//!
//! Every key has a scope, which names the kind of client. The same text in two scopes makes two keys.
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
//! | extractor | counts by | scope |
//! |---|---|---|
//! | [`client_ip`] | client address, IPv6 by /64, also [behind proxies](ClientIp::behind) | `ip`; `ip of x-forwarded-for /48 v4/24` |
//! | [`header()`], [`cookie`] | header, cookie | `header x`, `cookie x` |
//! | [`bearer`], [`basic_user`] | bearer token, user of Basic authentication | `bearer token`, `basic user` |
//! | `jwt_claim` (feature `jwt`) | claim of a verified token | `jwt claim x of bearer token` |
//! | `unverified_jwt_claim` (feature `jwt`) | claim of a token that an outer layer verified | `unverified jwt claim x of bearer token` |
//! | `route`, `path_parameter` (feature `axum`) | matched route, parameter of the route | `route`, `path parameter x` |
//! | [`path`], [`path_segment`], [`query`] | path, segment, query parameter | `path`, `path segment 0`, `query x` |
//! | [`host`], [`method`] | requested host, method | `host`, `method` |
//! | [`grpc_service`], [`grpc_method`] | `pkg.Service`, `pkg.Service/Method` | `grpc service`, `grpc method` |
//! | [`metadata`] | gRPC metadata | `metadata x` |
//! | [`extension()`] | value from an outer layer | `extension x` |
//! | [`from_fn`] | value from a closure | `fn x` |
//! | [`everyone`] | all requests together | `everyone` |
//! | [`all`](all()) | several keys together | `(ip + method)` |
//! | [`first_of`](first_of()), `a.or(b)` | first key that is not missing | scope of the part |
//!
//! To peek at, reset or block a client, pass a request or the text of a key to your
//! [`RateLimitHandle`](crate::RateLimitHandle), or build a key with a method like [`ValueKey::key_of`].
//!
//! # Caveats
//!
//! * **Clients make up values**, and every new value gets a new counter. Limit by address too.
//! * **Extractors run before the limits**, so refused requests pay too. Most extractors take less than a microsecond.
//!   For `jwt_claim`, let an outer layer refuse floods first.
//! * **Keys may be secrets.** `Debug` output hides keys, and stores keep digests.
//! * **Limits with the same scope share a key.** A policy [refuses](crate::ConfigError::SharedScope) different
//!   extractors with the same scope, for example two closures with the same name.
//! * **Names that you build at run time** stay in memory until the process ends.
//!
//! # Customised: chosen at run time
//!
//! Choose a `Box<dyn KeyExtractor>`, or parse a [`ValueKey`] from text:
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
