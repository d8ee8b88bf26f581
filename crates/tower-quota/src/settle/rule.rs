use std::sync::Arc;

use http::response::Parts;

use super::ResponseEnd;

/// The settle on the estimated cost of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settle {
    /// The estimate stays charged.
    #[default]
    Keep,
    /// The estimate is refunded.
    Refund,
    /// The request costs this many units instead, into debt if necessary.
    Cost(u64),
}

/// Decides the final cost of a request from the response.
///
/// You can use a closure on the head of the response:
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
/// Your rule must be quick, and never block or panic.
pub trait Rule: Send + Sync + 'static {
    /// Decides by the head of the response, or returns `None` to wait for the end of the body.
    fn at_head(&self, response: &Parts) -> Option<Settle>;

    /// Returns the maximum length of the body in bytes, given the available units at admission.
    ///
    /// Longer bodies are cut off, in gRPC after the last message that fits. By default there is no maximum.
    fn most_bytes(&self, units: u64) -> Option<u64> {
        let _ = units;
        None
    }

    /// Decides by the end of the body, if the head did not decide. By default the estimate stays.
    fn at_end(&self, end: &ResponseEnd<'_>) -> Settle {
        let _ = end;
        Settle::Keep
    }
}

#[derive(Clone)]
pub(crate) struct SettleRule {
    pub(crate) rule: Arc<dyn Rule>,
    pub(crate) abandoned: Settle,
}

impl Default for SettleRule {
    fn default() -> Self {
        Self {
            rule: Arc::new(by_handler()),
            abandoned: Settle::Keep,
        }
    }
}

impl<F: Fn(&Parts) -> Settle + Send + Sync + 'static> Rule for F {
    fn at_head(&self, response: &Parts) -> Option<Settle> {
        Some(self(response))
    }
}

impl Rule for Arc<dyn Rule> {
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

/// Settles by the cost from the handler's [`Reservation`](super::Reservation). Otherwise the estimate stays.
#[must_use]
pub fn by_handler() -> impl Rule {
    |_: &Parts| Settle::Keep
}
