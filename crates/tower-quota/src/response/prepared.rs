//! Texts about limits, which a plan prepares once.

use tower_quota_core::Quota;

use super::text::{
    field_text, push_escaped, push_integer, push_separator, push_string, window_secs,
};
use crate::limit::Limit;

/// The maximum number of limits with prepared texts. Few requests have more limits.
const MAX_LIMITS: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct PreparedTexts {
    /// The `RateLimit-Policy` of a request with all limits, or an empty text.
    pub(super) policy: String,
    /// The names of the limits of the plan, escaped for JSON.
    pub(super) names: Vec<String>,
    /// Whether fields leave out any limit.
    pub(super) hides: bool,
}

impl PreparedTexts {
    pub(crate) fn new(limits: &[Limit]) -> Self {
        let hides = limits.iter().any(is_unreported);
        if limits.len() > MAX_LIMITS {
            return Self {
                hides,
                ..Self::default()
            };
        }
        let mut policy = field_text();
        for limit in limits {
            if !is_unreported(limit) && !limit.is_shadow() {
                push_separator(&mut policy);
                push_policy(&mut policy, limit, &limit.quota);
            }
        }
        let mut names = vec![String::new(); limits.len()];
        for (name, limit) in names.iter_mut().zip(limits) {
            push_escaped(name, limit.name.as_str());
        }
        Self {
            policy,
            names,
            hides,
        }
    }
}

/// Returns whether no field names the limit.
pub(super) fn is_unreported(limit: &Limit) -> bool {
    limit.is_hidden || limit.flags()
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
