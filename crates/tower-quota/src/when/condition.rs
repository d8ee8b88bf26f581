//! What a condition is, conditions made of others, and what patterns can get wrong.

use core::error::Error;
use core::fmt;

use crate::head::RequestHead;

/// Says whether something holds of a request.
///
/// Every closure that does is one, and so are boxes of conditions, which the functions of [this module](crate::when)
/// return: they go together into arrays and can be chosen at run time. A condition runs on every request: it should neither
/// block nor allocate.
///
/// It is a name for these bounds, not a trait to implement: wrap a type of your own into a closure.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether it holds of a request",
    note = "use a condition of `tower_quota::when`, such as `when::path(\"/login\")`, or a closure: `|head| ..`"
)]
pub trait Condition: Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static {}

impl<F: Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static> Condition for F {}

impl fmt::Debug for dyn Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condition")
    }
}

/// Holds where the other does not.
#[must_use]
pub fn not(condition: impl Condition) -> Box<dyn Condition> {
    // A condition that errs towards "yes" makes this one err towards "no".
    Box::new(move |head| !condition(&head.in_doubt(!head.holds_in_doubt())))
}

/// Holds where at least one of these does, and never if there are none.
///
/// They are asked in order, up to the first that holds. Conditions of different types, such as a closure among those of
/// [this module](crate::when), have to be boxed.
#[must_use]
#[doc(alias = "or")]
pub fn any<C: Condition>(conditions: impl IntoIterator<Item = C>) -> Box<dyn Condition> {
    let conditions: Box<[C]> = conditions.into_iter().collect();
    Box::new(move |head| conditions.iter().any(|condition| condition(head)))
}

/// Holds where all of these do, and always if there are none.
///
/// They are asked in order, up to the first that does not hold. Mixed types have to be boxed, as for [`any`].
#[must_use]
#[doc(alias = "and")]
#[doc(alias = "all")]
pub fn every<C: Condition>(conditions: impl IntoIterator<Item = C>) -> Box<dyn Condition> {
    let conditions: Box<[C]> = conditions.into_iter().collect();
    Box::new(move |head| conditions.iter().all(|condition| condition(head)))
}

/// An invalid pattern of a condition. The message names it and says how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// Not a pattern of paths.
    Path {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Neither a host's name, nor an address, nor `*.` before a name.
    Host(String),
    /// Neither an address nor a network, which is an address with the length of its prefix: `203.0.113.0/24`.
    Network(String),
    /// Not the full name of a gRPC service.
    GrpcService(String),
    /// Not the full name of a gRPC method.
    GrpcMethod(String),
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { pattern, reason } => write!(f, "{pattern:?} is not a pattern of paths: {reason}"),
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
