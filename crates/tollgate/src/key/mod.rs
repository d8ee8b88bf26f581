//! Who is counted: extractors that read a [`Key`](crate::Key) from a request.
//!
//! | extractor | counts by | missing when |
//! |---|---|---|
//! | [`client_ip`] | the peer's address, IPv6 by its /64 | the server attached no address |
//! | [`header`] | a header's value | absent or empty |
//! | `route` (feature `axum`) | the pattern of the matched route | no route has matched |
//! | [`method`] | the request's method | never |
//! | [`everyone`] | nobody in particular: one counter for all | never |
//! | [`from_fn`] | what a closure makes of the request | the closure says `None` |
//! | [`all`] | several of them together | a part is missing |
//!
//! What a missing key means is the limit's choice: [`MissingKey`](crate::MissingKey).
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
//! use tollgate::{Limit, Quota, key};
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
mod client_ip;
mod everyone;
mod extractor;
mod from_fn;
mod header;
mod method;
#[cfg(feature = "axum")]
mod route;

pub use self::all::{All, IntoExtractors, all};
pub use self::client_ip::{ClientIp, client_ip};
pub use self::everyone::{Everyone, everyone};
pub use self::extractor::KeyExtractor;
pub(crate) use self::from_fn::MARK as CLOSURE_MARK;
pub use self::from_fn::{FromFn, from_fn};
pub use self::header::{Header, header, try_header};
pub use self::method::{Method, method};
#[cfg(feature = "axum")]
pub use self::route::{Route, route};
