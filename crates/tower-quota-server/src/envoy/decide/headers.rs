//! Header fields with the tightest limit of a call.

use super::plan::Plan;
use crate::messages::HeaderValue;
use crate::messages::ratelimit::rate_limit_response::{Code, DescriptorStatus};

impl Plan<'_> {
    /// Returns the fields of the tightest limit, if the call has limits.
    ///
    /// As in envoyproxy/ratelimit, the tightest limit is the last one that refuses the call, or the first one with the
    /// fewest remaining requests.
    pub(super) fn headers(&self, statuses: &[DescriptorStatus]) -> Vec<HeaderValue> {
        let mut tightest = None;
        let mut fewest = u32::MAX;
        for (asked, status) in self.asked.iter().zip(statuses) {
            let Some(limit) = &status.current_limit else {
                continue;
            };
            let refuses = status.code() == Code::OverLimit && !self.is_quota(asked);
            if refuses || status.limit_remaining < fewest {
                tightest = Some((status, limit.requests_per_unit));
                fewest = if refuses { 0 } else { status.limit_remaining };
            }
        }
        let Some((status, requests)) = tightest else {
            return Vec::new();
        };
        let reset = status.duration_until_reset.map_or(0, |reset| reset.seconds);
        vec![
            field(&self.options.limit_header, requests),
            field(&self.options.remaining_header, status.limit_remaining),
            field(&self.options.reset_header, reset),
        ]
    }
}

fn field(name: &str, value: impl ToString) -> HeaderValue {
    HeaderValue {
        key: name.to_owned(),
        value: value.to_string(),
        ..HeaderValue::default()
    }
}
