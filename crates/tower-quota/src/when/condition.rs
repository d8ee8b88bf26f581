use core::error::Error;
use core::fmt;

use crate::head::RequestHead;

/// Matches requests.
///
/// Pass a closure from [`RequestHead`] to `bool`, or use [this module](crate::when). Do not block, because conditions
/// run on every request.
///
/// Wrap your own types into closures.
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

/// Matches if the condition does not match.
#[must_use]
pub fn not(condition: impl Condition) -> Box<dyn Condition> {
    // In doubt, the inner condition must give the opposite answer.
    Box::new(move |head: &RequestHead<'_>| !condition(&head.in_doubt(!head.holds_in_doubt())))
}

/// Matches if at least one condition matches.
///
/// An empty list never matches. The first match ends the check. Box different types.
#[must_use]
#[doc(alias = "or")]
pub fn any<C: Condition>(conditions: impl IntoIterator<Item = C>) -> Box<dyn Condition> {
    let conditions: Box<[C]> = conditions.into_iter().collect();
    Box::new(move |head: &RequestHead<'_>| conditions.iter().any(|condition| condition(head)))
}

/// Matches if all conditions match.
///
/// An empty list always matches. The first mismatch ends the check. Box different types.
#[must_use]
#[doc(alias = "and")]
#[doc(alias = "all")]
pub fn every<C: Condition>(conditions: impl IntoIterator<Item = C>) -> Box<dyn Condition> {
    let conditions: Box<[C]> = conditions.into_iter().collect();
    Box::new(move |head: &RequestHead<'_>| conditions.iter().all(|condition| condition(head)))
}

/// An invalid pattern. The message says how to fix the pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// The text is not a path pattern.
    Path {
        /// The pattern.
        pattern: String,
        /// The mistake.
        reason: String,
    },
    /// The text is not a host, an address, or `*.` before a name.
    Host(String),
    /// The text is not an address or a network.
    Network(String),
    /// The text is not a full gRPC service name.
    GrpcService(String),
    /// The text is not a full gRPC method name.
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
