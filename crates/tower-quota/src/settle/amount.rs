use http::header::{HeaderName, InvalidHeaderName};
use http::response::Parts;

use super::{ResponseEnd, Rule, Settle};
use crate::cost::number_in;
use crate::valid::valid_header;

/// Settles by the number in a header of the response.
///
/// The estimate stays if the header is absent, ambiguous, or not a non-negative integer. The client sees the header.
///
/// # Panics
/// Panics when `name` is not a header name. See [`try_cost_header`].
#[must_use]
#[track_caller]
pub fn cost_header(name: &str) -> impl Rule + use<> {
    cost_in(valid_header(name))
}

/// Works like [`cost_header`], but returns an error for an invalid name.
///
/// # Errors
/// Returns [`InvalidHeaderName`] when `name` is empty or not a token (RFC 9110, section 5.1).
pub fn try_cost_header(name: &str) -> Result<impl Rule + use<>, InvalidHeaderName> {
    Ok(cost_in(HeaderName::from_bytes(name.as_bytes())?))
}

fn cost_in(name: HeaderName) -> impl Rule {
    move |response: &Parts| number_in(&response.headers, &name).map_or(Settle::Keep, Settle::Cost)
}

/// Settles by the length of the response's body, in units of `bytes_per_unit` bytes, rounded up.
///
/// The minimum is 1 unit of at least 1 byte. If the client disconnects, you charge the bytes accepted for sending.
pub const fn body_bytes(bytes_per_unit: u64) -> BodyBytes {
    let bytes_per_unit = if bytes_per_unit == 0 {
        1
    } else {
        bytes_per_unit
    };
    BodyBytes {
        bytes_per_unit,
        is_cut: false,
    }
}

/// The rule of [`body_bytes`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct BodyBytes {
    bytes_per_unit: u64,
    is_cut: bool,
}

impl BodyBytes {
    /// Cuts the body off at the units that remained at admission, instead of going into debt.
    ///
    /// A gRPC stream ends after the last message that fits, with `RESOURCE_EXHAUSTED`. In HTTP, your clients see an
    /// incomplete or shorter body.
    ///
    /// ```
    /// use tower_quota::{Limit, Quota, settle};
    ///
    /// let megabytes = Limit::new("download", Quota::per_hour(100)).settle(settle::body_bytes(1_000_000).cut_when_spent());
    /// # let _ = megabytes;
    /// ```
    pub const fn cut_when_spent(mut self) -> Self {
        self.is_cut = true;
        self
    }
}

impl Rule for BodyBytes {
    fn at_head(&self, _: &Parts) -> Option<Settle> {
        None
    }

    fn most_bytes(&self, units: u64) -> Option<u64> {
        self.is_cut
            .then(|| units.saturating_mul(self.bytes_per_unit))
    }

    fn at_end(&self, end: &ResponseEnd<'_>) -> Settle {
        // A response without a body costs the server work too.
        Settle::Cost(end.bytes.div_ceil(self.bytes_per_unit).max(1))
    }
}
