//! Writes limits as the text of `RateLimit-Policy`.

use tower_quota_core::Quota;

use super::text::{field_text, push_integer, push_separator, push_string, window_secs};
use crate::limit::Limit;

/// The maximum number of limits with a prepared text. Few requests have more limits.
const MAX_RENDERED: usize = 64;

#[derive(Debug)]
pub(crate) struct FullPolicy {
    pub(super) text: String,
    /// The number of limits, with the shadow and hidden limits that the text leaves out.
    pub(super) limits: usize,
}

impl FullPolicy {
    pub(crate) fn new<'a>(limits: impl Iterator<Item = &'a Limit>) -> Option<Self> {
        let mut list = field_text();
        let mut count = 0;
        for limit in limits {
            count += 1;
            if count > MAX_RENDERED {
                return None;
            }
            if !limit.is_hidden() && !limit.is_shadow() {
                push_separator(&mut list);
                push_policy(&mut list, limit, &limit.quota);
            }
        }
        Some(Self {
            text: list,
            limits: count,
        })
    }
}

/// Appends `"burst";q=20;w=2`.
pub(super) fn push_policy(out: &mut String, limit: &Limit, quota: &Quota) {
    push_string(out, limit.name.as_str());
    out.push_str(";q=");
    push_integer(out, quota.capacity());
    if let Some(unit) = limit.unit {
        out.push_str(";qu=");
        push_string(out, unit.as_str());
    }
    out.push_str(";w=");
    push_integer(out, window_secs(quota));
}
