//! The trait of conditions, combinations of conditions, and the errors of patterns.

use core::error::Error;
use core::fmt;

use crate::head::RequestHead;

/// Says whether a request matches.
///
/// Closures from a [`RequestHead`] to a `bool` are conditions, and so are the boxes that the functions of [this
/// module](crate::when) return. A condition runs on every request: it must not block and should not allocate.
///
/// You cannot implement this trait. Wrap your own type into a closure.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a condition on requests",
    note = "use a condition of `tower_quota::when`, such as `when::path(\"/login\")`, or a closure: `|head| ..`"
)]
pub trait Condition: Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static {}

impl<F: Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static> Condition for F {}

impl fmt::Debug for dyn Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condition")
    }
}

/// Matches requests that the given condition does not match.
#[must_use]
pub fn not(condition: impl Condition) -> Box<dyn Condition> {
    // If the inner condition is unsure, the negated answer must be the requested one.
    Box::new(move |head: &RequestHead<'_>| !condition(&head.in_doubt(!head.holds_in_doubt())))
}

/// Matches if at least one of these conditions does, and never if there are none.
///
/// They run in order, up to the first match. Box conditions of different types.
#[must_use]
#[doc(alias = "or")]
pub fn any<C: Condition>(conditions: impl IntoIterator<Item = C>) -> Box<dyn Condition> {
    let conditions: Box<[C]> = conditions.into_iter().collect();
    Box::new(move |head: &RequestHead<'_>| conditions.iter().any(|condition| condition(head)))
}

/// Matches if all of these conditions do, and always if there are none.
///
/// They run in order, up to the first that does not match. Box conditions of different types.
#[must_use]
#[doc(alias = "and")]
#[doc(alias = "all")]
pub fn every<C: Condition>(conditions: impl IntoIterator<Item = C>) -> Box<dyn Condition> {
    let conditions: Box<[C]> = conditions.into_iter().collect();
    Box::new(move |head: &RequestHead<'_>| conditions.iter().all(|condition| condition(head)))
}

/// An invalid pattern of a condition. The message names it and says how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// The text is not a pattern of paths.
    Path {
        /// The pattern.
        pattern: String,
        /// The reason why it is invalid.
        reason: String,
    },
    /// The text is not a host name, an address, or `*.` before a name.
    Host(String),
    /// The text is not an address or a network such as `203.0.113.0/24`.
    Network(String),
    /// The text is not the full name of a gRPC service.
    GrpcService(String),
    /// The text is not the full name of a gRPC method.
    GrpcMethod(String),
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { pattern, reason } => {
                write!(f, "{pattern:?} is not a pattern of paths: {reason}")
            }
            Self::Host(pattern) => write!(
                f,
                "{pattern:?} is not a host: give a name without a port such as \"api.example.com\", or \
                 \"*.example.com\" for every name under it"
            ),
            Self::Network(text) => write!(
                f,
                "{text:?} is not a network: give an address, or one with the length of its prefix such as \
                 \"203.0.113.0/24\""
            ),
            Self::GrpcService(name) => write!(
                f,
                "{name:?} is not a gRPC service: give its full name, with the package and without slashes, such as \
                 \"grpc.health.v1.Health\""
            ),
            Self::GrpcMethod(name) => write!(
                f,
                "{name:?} is not a gRPC method: give its full name, with the service, such as \
                 \"grpc.health.v1.Health/Check\""
            ),
        }
    }
}

impl Error for PatternError {}
