//! Writes limits as the text of `RateLimit-Policy`.

use http::header::HeaderValue;
use tower_quota_core::Quota;

use super::text::{FieldText, push_integer, push_separator, push_string, text_value, window_secs};
use crate::limit::Limit;

/// The maximum number of limits with a prepared text. Few requests have more limits.
const MAX_RENDERED: usize = 64;

#[derive(Debug)]
pub(crate) struct FullPolicy {
    pub(super) text: HeaderValue,
    pub(super) limits: usize,
}

impl FullPolicy {
    pub(crate) fn new<'a>(limits: impl Iterator<Item = &'a Limit>) -> Option<Self> {
        let (mut list, mut count) = (FieldText::new(), 0);
        for limit in limits.filter(|limit| !limit.is_hidden() && !limit.is_shadow()) {
            count += 1;
            if count > MAX_RENDERED {
                return None;
            }
            push_separator(&mut list);
            push_policy(&mut list, limit, &limit.quota);
        }
        Some(Self {
            text: text_value(&list)?,
            limits: count,
        })
    }
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
