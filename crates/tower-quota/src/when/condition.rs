//! The trait of conditions, combinations of conditions, and the errors of patterns.

use core::any::Any;
use core::error::Error;
use core::fmt;

use crate::described::Described;
use crate::describing::{describing, of_closure};
use crate::head::RequestHead;

/// Says whether a request matches.
///
/// Every closure from a [`RequestHead`] to a `bool` is a condition. So are boxes of conditions, which the functions of
/// [this module](crate::when) return: they can be put into one array and chosen at run time. A condition runs on every
/// request: it must not block and should not allocate.
///
/// The trait is a name for these bounds and cannot be implemented: wrap your own type into a closure.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a condition on requests",
    note = "use a condition of `tower_quota::when`, such as `when::path(\"/login\")`, or a closure: `|head| ..`"
)]
pub trait Condition: Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static {
    /// Returns the condition as rules documents write it; `None` if only code can say it.
    #[doc(hidden)]
    fn describe(&self) -> Option<Described>;
}

impl<F: Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static> Condition for F {
    fn describe(&self) -> Option<Described> {
        match (self as &dyn Any).downcast_ref::<Box<dyn Condition>>() {
            Some(boxed) => (**boxed).describe(),
            None => of_closure(self, |head| {
                self(head);
            }),
        }
    }
}

/// Describes a condition of your own, for documents that are made of policies: see [`Policy::parts`].
///
/// ```
/// use tower_quota::{Described, Limit, Quota, when};
///
/// let is_beta = when::described(Described::code("beta"), |head| head.headers().contains_key("x-beta"));
/// let limit = Limit::new("beta", Quota::per_minute(10)).when(is_beta);
/// # let _ = limit;
/// ```
///
/// [`Policy::parts`]: crate::Policy::parts
#[must_use]
pub fn described(description: Described, condition: impl Condition) -> Box<dyn Condition> {
    boxed(move |head| head.describe(|| description.clone()) || condition(head))
}

/// Boxes a closure that describes itself.
pub(super) fn boxed(
    condition: impl Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static,
) -> Box<dyn Condition> {
    Box::new(describing(condition))
}

impl fmt::Debug for dyn Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condition")
    }
}

/// Matches requests that the given condition does not match.
#[must_use]
pub fn not(condition: impl Condition) -> Box<dyn Condition> {
    // If the inner condition is unsure, the negated answer must be the requested one.
    boxed(move |head| {
        head.describe_if_known(|| Some(Described::field("not", condition.describe()?)))
            || !condition(&head.in_doubt(!head.holds_in_doubt()))
    })
}

/// Matches if at least one of these conditions does, and never if there are none.
///
/// They run in order, up to the first that matches. Conditions of different types, such as a closure and those of [this
/// module](crate::when), must be boxed.
#[must_use]
#[doc(alias = "or")]
pub fn any<C: Condition>(conditions: impl IntoIterator<Item = C>) -> Box<dyn Condition> {
    let conditions: Box<[C]> = conditions.into_iter().collect();
    boxed(move |head| {
        head.describe_if_known(|| describe_each("any", &conditions))
            || conditions.iter().any(|condition| condition(head))
    })
}

/// Matches if all of these conditions do, and always if there are none.
///
/// They run in order, up to the first that does not match. Conditions of different types must be boxed, as for [`any`].
#[must_use]
#[doc(alias = "and")]
#[doc(alias = "all")]
pub fn every<C: Condition>(conditions: impl IntoIterator<Item = C>) -> Box<dyn Condition> {
    let conditions: Box<[C]> = conditions.into_iter().collect();
    boxed(move |head| {
        head.describe_if_known(|| describe_each("every", &conditions))
            || conditions.iter().all(|condition| condition(head))
    })
}

/// Describes a combination of conditions, if each of them describes itself.
fn describe_each<C: Condition>(how: &'static str, conditions: &[C]) -> Option<Described> {
    let all = conditions
        .iter()
        .map(Condition::describe)
        .collect::<Option<Vec<_>>>()?;
    Some(Described::field(how, Described::List(all)))
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
    /// The text is neither a host name, nor an address, nor `*.` before a name.
    Host(String),
    /// The text is neither an address nor a network such as `203.0.113.0/24`.
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
