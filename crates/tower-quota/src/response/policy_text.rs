//! Limits in the text of `RateLimit-Policy`.

use http::header::HeaderValue;
use tower_quota_core::Quota;

use super::text::{FieldText, push_integer, push_separator, push_string, text_value, window_secs};
use crate::limit::Limit;

/// A request seldom has more limits at once.
const MAX_RENDERED: usize = 64;

pub(super) fn policy_of_all(limits: &[Limit]) -> Option<HeaderValue> {
    if limits.len() > MAX_RENDERED {
        return None;
    }
    let mut list = FieldText::new();
    for limit in limits {
        push_separator(&mut list);
        push_policy(&mut list, limit, &limit.quota);
    }
    text_value(&list)
}

/// Appends `"burst";q=20;w=2`.
pub(super) fn push_policy(out: &mut FieldText, limit: &Limit, quota: &Quota) {
    push_string(out, limit.name.as_str());
    out.extend_from_slice(b";q=");
    push_integer(out, quota.capacity());
    if let Some(unit) = limit.unit {
        out.extend_from_slice(b";qu=");
        push_string(out, unit.as_str());
    }
    out.extend_from_slice(b";w=");
    push_integer(out, window_secs(quota));
}
