//! Key extractors: they read from a request the [`Key`](crate::Key) that a limit counts by.
//!
//! An extractor decides four things:
//!
//! 1. **Where the key is read**, and which notations of a value are the same key.
//! 2. **When the key is missing.** An empty key is missing. The limit chooses what happens then:
//!    [`MissingKey`](crate::MissingKey).
//! 3. **What conflicting values mean.** A request that sends different values in a place for one is refused where a missing
//!    key is refused. Otherwise all such requests share one counter. Block lists check [each
//!    value](KeyExtractor::each_value).
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
//! | extractor | counts by | missing when | scope of `"x"` | key by hand |
//! |---|---|---|---|---|
//! | [`client_ip`] | the client's address, IPv6 by its /64; [behind proxies](ClientIp::behind) too | the server attached no address | `ip`; `ip of x-forwarded-for /48 v4/24` | [`ClientIp::key_of`]: the leading bytes of the network |
//! | [`header()`] | a header's value | absent or empty | `header x` | [`HeaderKey::key_of`]: the value |
//! | [`bearer`] | a bearer token | not sent | `bearer token` | [`BearerKey::key_of`]: the token |
//! | [`basic_user`] | the user of Basic authentication | not sent, or unreadable | `basic user` | [`BasicUserKey::key_of`]: the name |
//! | `jwt_claim` (feature `jwt`) | a claim of a verified token | not sent, invalid, or without the claim | `jwt claim x of bearer token` | `JwtClaim::key_of`: the claim as text |
//! | `unverified_jwt_claim` (feature `jwt`) | a claim of a token that an outer layer has verified | not sent, or without the claim | `unverified jwt claim x of bearer token` | `JwtClaim::key_of` |
//! | [`cookie`] | a cookie's value | absent or empty | `cookie x` | [`CookieKey::key_of`]: the value, decoded |
//! | [`query`] | a parameter of the query, such as an API key | absent or empty | `query x` | [`QueryKey::key_of`]: the value, decoded |
//! | `route` (feature `axum`) | the pattern of the matched route | no route has matched | `route` | `RouteKey::key_of`: the pattern |
//! | `path_parameter` (feature `axum`) | a parameter of the matched route | no route has matched, or it has no such parameter | `path parameter x` | `PathParameterKey::key_of`: the value, decoded |
//! | [`path_segment`] | a segment of the path | the path is shorter | `path segment 0` | [`PathSegmentKey::key_of`]: the segment, decoded |
//! | [`path`] | the path | the target has none | `path` | [`PathKey::key_of`]: the path, decoded |
//! | [`host`] | the requested host | not sent | `host` | [`HostKey::key_of`] |
//! | [`method`] | the request's method | never | `method` | [`MethodKey::key_of`] |
//! | [`grpc_service`], [`grpc_method`] | the service or method in a gRPC path | the path has one segment | `grpc service`, `grpc method` | [`GrpcServiceKey::key_of`], [`GrpcMethodKey::key_of`]: `pkg.Service`, `pkg.Service/Method` |
//! | [`metadata`] | a value of gRPC metadata, `-bin` decoded | absent, empty or unreadable | `metadata x` | [`MetadataKey::key_of`]: the value, decoded |
//! | [`extension()`] | a value that an outer layer has attached | not attached, or the closure returns `None` | `extension x` | [`ExtensionKey::key_of`]: the value that the closure returns |
//! | [`from_fn`] | a value that a closure reads from the request | the closure returns `None` | `fn x` | [`FromFnKey::key_of`]: the value that the closure returns |
//! | [`everyone`] | all requests together: one counter | never | `everyone` | [`Key::EVERYONE`](crate::Key::EVERYONE) |
//! | [`all`](all()) | several keys together | a part is missing | `(ip + method)` | [`All::key_of`]: the keys of the parts |
//! | [`first_of`](first_of()), `a.or(b)` | the first key that is not missing | all parts are missing | that of the part; `(header x or ip)` when missing | the part's |
//!
//! [`KeyExtractor::parse`] makes the key from a text that an operator types. A
//! [`RateLimitHandle`](crate::RateLimitHandle) takes such text, a key, or a request of the client.
//!
//! # Caveats
//!
//! * **Clients make up values**, and different ones each time. Several notations of one value are one key. Extractors
//!   do not check that you issued a value: check that elsewhere, and limit by address too, so that made-up values gain
//!   nothing.
//! * **Every extractor of the limits that apply runs before the limits are decided**, and look-ups run before that, so
//!   refused requests pay for them too. Extractors of this module take less than a microsecond each, except
//!   `jwt_claim`, which verifies a signature. Let an outer layer that counts by [`client_ip`] alone refuse floods
//!   before expensive keys are read; `jwt_claim` shows how.
//! * **Keys may be secrets.** `Debug` of extractors and keys does not show them, and stores keep digests.
//! * **Limits whose extractors share a scope count the same key.** Within a policy the first such extractor runs once
//!   per request, and all of these limits use its key. Different extractors of one scope, such as two closures of one
//!   name, are [refused](crate::ConfigError::SharedScope). Names that are built at run time stay in memory until the
//!   process ends.
//!
//! # Customised: chosen at run time
//!
//! `Box<dyn KeyExtractor>` is a [`KeyExtractor`] too, so a configuration can choose:
//!
//! ```
//! use tower_quota::{Limit, Quota, key};
//!
//! # let by = "api key";
//! let extractor: Box<dyn key::KeyExtractor> = match by {
//!     "api key" => Box::new(key::header("x-api-key")),
//!     _ => Box::new(key::client_ip()),
//! };
//! let limit = Limit::new("minute", Quota::per_minute(100)).by(extractor);
//! # let _ = limit;
//! ```

mod all;
mod authorization;
mod client_ip;
mod custom;
mod extractor;
mod first_of;
mod grpc;
mod header;
#[cfg(feature = "jwt")]
mod jwt;
#[cfg(feature = "axum")]
mod matched;
mod mistake;
mod parts;
mod single;
mod uri;

pub use self::all::{All, MAX_SENT_KEYS, all};
pub use self::authorization::{BasicUserKey, BearerKey, basic_user, bearer};
pub use self::client_ip::{ClientIp, Proxies, Source, client_ip};
pub(crate) use self::client_ip::{canonical, forwarding_header, network};
pub(crate) use self::custom::CLOSURE_MARK;
pub use self::custom::{EveryoneKey, ExtensionKey, FromFnKey, everyone, extension, from_fn};
pub use self::extractor::{KeyExtractor, identity_of};
pub use self::first_of::{FirstOf, KeyExtractorExt, first_of};
pub use self::grpc::{
    GrpcMethodKey, GrpcServiceKey, MetadataKey, grpc_method, grpc_service, metadata, try_metadata,
};
pub use self::header::{CookieKey, HeaderKey, cookie, header, try_header};
#[cfg(feature = "jwt")]
pub use self::jwt::{InvalidJwtKey, JwtClaim, JwtKey, jwt_claim, unverified_jwt_claim};
#[cfg(feature = "axum")]
pub use self::matched::{PathParameterKey, RouteKey, path_parameter, route};
pub use self::mistake::Mistake;
pub use self::parts::IntoExtractors;
pub(crate) use self::single::is_conflict;
pub(crate) use self::uri::host_of;
pub use self::uri::{
    HostKey, MethodKey, PathKey, PathSegmentKey, QueryKey, host, method, path, path_segment, query,
};
