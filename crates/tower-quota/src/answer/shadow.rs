//! `X-RateLimit-Shadow: "new", "newer"`: the limits that are tried out and would have refused.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tower_quota_core::Name;

use super::structured::push_string;

const X_SHADOW: HeaderName = HeaderName::from_static("x-ratelimit-shadow");

/// Adds these limits to those of an inner limiter: a List of Strings (RFC 9651).
pub(super) fn write(limits: impl Iterator<Item = Name>, headers: &mut HeaderMap) {
    let mut list = Vec::new();
    for limit in limits {
        if !list.is_empty() {
            list.extend_from_slice(b", ");
        }
        push_string(&mut list, limit.as_str());
    }
    if !list.is_empty()
        && let Ok(list) = HeaderValue::try_from(list)
    {
        headers.append(X_SHADOW, list);
    }
}
