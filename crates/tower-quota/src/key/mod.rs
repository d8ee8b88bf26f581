//! Who is counted: extractors that read a [`Key`](crate::Key) from a request.
//!
//! | extractor | counts by | missing when |
//! |---|---|---|
//! | [`client_ip`] | the client's address, IPv6 by its /64; [behind proxies](ClientIp::behind) too | the server attached no address |
//! | [`header`] | a header's value | absent or empty |
//! | [`bearer`] | a bearer token | not sent |
//! | [`basic_user`] | the user of Basic authentication | not sent, or unreadable |
//! | `jwt_claim` (feature `jwt`) | a claim of a verified token | not sent, not to be believed, or without the claim |
//! | `unverified_jwt_claim` (feature `jwt`) | a claim of a token that another layer has verified | not sent, or without the claim |
//! | [`cookie`] | a cookie's value | absent or empty |
//! | [`query`] | a parameter of the query, such as an API key | absent or empty |
//! | `route` (feature `axum`) | the pattern of the matched route | no route has matched |
//! | `path_parameter` (feature `axum`) | a parameter of the matched route | no route has matched, or it has no such parameter |
//! | [`path_segment`] | a segment of the path | the path is shorter |
//! | [`path`] | the whole path | the target has none |
//! | [`host`] | the host that was asked for | not told |
//! | [`method`] | the request's method | never |
//! | [`grpc_service`], [`grpc_method`] | what a gRPC request calls | the request is not gRPC |
//! | [`metadata`] | a value of gRPC metadata, `-bin` decoded | absent, empty or unreadable |
//! | [`extension`] | what an outer layer has attached | it is not there |
//! | [`everyone`] | nobody in particular: one counter for all | never |
//! | [`from_fn`] | what a closure makes of the request | the closure says `None` |
//! | [`all`] | several of them together | a part is missing |
//!
//! What a missing key means is the limit's choice: [`MissingKey`](crate::MissingKey).
//!
//! # What a client sends
//!
//! Whatever stands in a request the client may have made up, and made up differently each time. The extractors see to it
//! that one subject spelled in several ways stays one, and that saying two different things in the place of one names
//! nobody: such requests share one counter. They cannot know which values are good: check that elsewhere, and limit by
//! address too, so that made-up ones buy nothing.
//!
//! Keys may be secrets. Neither the extractors nor the keys show them in `Debug`, and stores keep digests.
//!
//! # One scope, one subject
//!
//! Every extractor has a [scope](KeyExtractor::scope), a name for what its keys are. Limits whose extractors share a
//! scope count the same subject: within a policy the first such extractor is asked, once per request, and its key
//! serves them all. Different extractors of one scope, such as two closures given one name, are
//! [refused](crate::ConfigError::SharedScope).
//!
//! # Chosen at run time
//!
//! `Box<dyn KeyExtractor>` is a [`KeyExtractor`] too, so configuration can decide:
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
mod basic_user;
mod bearer;
mod client_ip;
mod cookie;
mod everyone;
mod extension;
mod extractor;
mod from_fn;
mod grpc;
mod header;
mod host;
#[cfg(feature = "jwt")]
mod jwt;
mod metadata;
mod method;
mod path;
#[cfg(feature = "axum")]
mod path_parameter;
mod query;
#[cfg(feature = "axum")]
mod route;
mod told;

pub use self::all::{All, IntoExtractors, all};
pub use self::basic_user::{BasicUser, basic_user};
pub use self::bearer::{Bearer, bearer};
pub use self::client_ip::{ClientIp, Proxies, Source, client_ip};
pub use self::cookie::{Cookie, cookie};
pub use self::everyone::{Everyone, everyone};
pub use self::extension::{Extension, extension};
pub use self::extractor::{KeyExtractor, identity_of};
pub(crate) use self::from_fn::MARK as CLOSURE_MARK;
pub use self::from_fn::{FromFn, from_fn};
pub use self::grpc::{GrpcMethod, GrpcService, grpc_method, grpc_service};
pub use self::header::{Header, header, try_header};
pub use self::host::{Host, host};
#[cfg(feature = "jwt")]
pub use self::jwt::{InvalidJwtKey, JwtClaim, JwtKey, jwt_claim, unverified_jwt_claim};
pub use self::metadata::{Metadata, metadata, try_metadata};
pub use self::method::{Method, method};
pub use self::path::{Path, PathSegment, path, path_segment};
#[cfg(feature = "axum")]
pub use self::path_parameter::{PathParameter, path_parameter};
pub use self::query::{Query, query};
#[cfg(feature = "axum")]
pub use self::route::{Route, route};
