//! The seam between a response and what its request turns out to cost.

use std::sync::Arc;

use http::response::Parts;

use super::ResponseEnd;

/// What becomes of a request's estimated cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settle {
    /// It stays charged.
    #[default]
    Keep,
    /// All of it is given back.
    Refund,
    /// The request costs this many units instead: less is given back, more is taken, into debt if need be.
    Cost(u64),
}

/// Decides from its response what a request costs; closures do, from the head:
///
/// ```
/// use http::StatusCode;
/// use http::response::Parts;
/// use tower_quota::settle::Settle;
/// use tower_quota::{Limit, Quota};
///
/// let limit = Limit::new("searches", Quota::per_minute(100)).cost(10).settle(|response: &Parts| {
///     if response.headers.contains_key("x-cache-hit") { Settle::Cost(1) } else { Settle::Keep }
/// });
/// # let _ = limit;
/// ```
///
/// A rule runs for each request of its limit, where the response is made or its body ends: it must be quick, and never
/// block or panic.
pub trait Rule: Send + Sync + 'static {
    /// Decides by the head of the response; `None` when the end of the body has to be waited for.
    fn at_head(&self, response: &Parts) -> Option<Settle>;

    /// Returns how many bytes of the body may be sent, given the units that the request could take when it was admitted.
    ///
    /// A gRPC call ends after the last message that fits, with `RESOURCE_EXHAUSTED`, other responses like a body that was
    /// cut off. By default bodies are sent completely, and what the quota did not have becomes a debt.
    fn most_bytes(&self, units: u64) -> Option<u64> {
        let _ = units;
        None
    }

    /// Decides by the end of the body, where the head decided nothing. By default the estimate stays.
    fn at_end(&self, end: &ResponseEnd<'_>) -> Settle {
        let _ = end;
        Settle::Keep
    }
}

impl<F: Fn(&Parts) -> Settle + Send + Sync + 'static> Rule for F {
    fn at_head(&self, response: &Parts) -> Option<Settle> {
        Some(self(response))
    }
}

macro_rules! rule_behind {
    ($($pointer:ident),*) => {$(
        impl Rule for $pointer<dyn Rule> {
            fn at_head(&self, response: &Parts) -> Option<Settle> {
                (**self).at_head(response)
            }

            fn most_bytes(&self, units: u64) -> Option<u64> {
                (**self).most_bytes(units)
            }

            fn at_end(&self, end: &ResponseEnd<'_>) -> Settle {
                (**self).at_end(end)
            }
        }
    )*};
}

rule_behind!(Box, Arc);

/// The request costs what its handler says, by its [`Reservation`](super::Reservation); the estimate when it says
/// nothing.
#[must_use]
pub fn by_handler() -> impl Rule {
    |_: &Parts| Settle::Keep
}
