//! Preflight requests.

use http::Method;
use http::header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};

use super::Condition;
use crate::head::RequestHead;

/// Holds of CORS preflight requests (the Fetch standard, section "HTTP requests"): `OPTIONS` with `Origin` and
/// `Access-Control-Request-Method`.
///
/// Browsers send them by themselves, so skipping them is fair to their users. But anybody can send them: skip them only
/// where they are cheap to answer.
#[must_use]
pub fn cors_preflight() -> Box<dyn Condition> {
    Box::new(|head: &RequestHead<'_>| {
        head.method() == Method::OPTIONS
            && head.headers().contains_key(ORIGIN)
            && head.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
    })
}
