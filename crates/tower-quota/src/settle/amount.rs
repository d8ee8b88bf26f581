//! Costs that the response tells.

use http::header::{HeaderName, InvalidHeaderName};
use http::response::Parts;

use super::{ResponseEnd, Rule, Settle};
use crate::cost::number_in;

/// The request costs the whole number in a header of the response; the estimate where it is absent or no such number,
/// or where several lines differ. The header goes on to the client.
///
/// # Panics
/// When `name` cannot be the name of a header; see [`try_cost_header`].
#[must_use]
#[track_caller]
pub fn cost_header(name: &str) -> impl Rule + use<> {
    match try_cost_header(name) {
        Ok(rule) => rule,
        #[expect(clippy::panic, reason = "documented: a name written in code fails at start")]
        Err(_) => panic!("{name:?} cannot be the name of a header: give a token such as \"x-cost\""),
    }
}

/// [`cost_header`] for a name that was not written in code.
///
/// # Errors
/// [`InvalidHeaderName`] when `name` is empty or not a token (RFC 9110, section 5.1).
pub fn try_cost_header(name: &str) -> Result<impl Rule + use<>, InvalidHeaderName> {
    let name = HeaderName::from_bytes(name.as_bytes())?;
    Ok(move |response: &Parts| number_in(&response.headers, &name).map_or(Settle::Keep, Settle::Cost))
}

/// The request costs the length of the response's body, in units of `bytes_per_unit` (0 counts as 1), rounded up.
/// Counted are the bytes that the server took to send: of a client that goes away, those up to then.
#[must_use]
pub fn body_bytes(bytes_per_unit: u64) -> impl Rule {
    BodyBytes { bytes_per_unit: bytes_per_unit.max(1) }
}

struct BodyBytes {
    bytes_per_unit: u64,
}

impl Rule for BodyBytes {
    fn at_head(&self, _: &Parts) -> Option<Settle> {
        None
    }

    fn at_end(&self, end: &ResponseEnd<'_>) -> Settle {
        Settle::Cost(end.bytes().div_ceil(self.bytes_per_unit))
    }
}
