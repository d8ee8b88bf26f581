//! Header fields with the tightest limit of a call.

use crate::envoy::options::HeaderNames;
use crate::messages::HeaderValue;
use crate::messages::ratelimit::rate_limit_response::{Code, DescriptorStatus};

/// Returns the fields of the tightest limit, if the call has limits.
pub(super) fn fields(names: &HeaderNames, statuses: &[DescriptorStatus]) -> Vec<HeaderValue> {
    let limits = statuses
        .iter()
        .filter_map(|status| Some((status, status.current_limit.as_ref()?)));
    let tightest =
        limits.min_by_key(|(status, _)| (status.code() != Code::OverLimit, status.limit_remaining));
    let Some((status, limit)) = tightest else {
        return Vec::new();
    };
    let reset = status.duration_until_reset.map_or(0, |reset| reset.seconds);
    vec![
        field(&names.limit, limit.requests_per_unit),
        field(&names.remaining, status.limit_remaining),
        field(&names.reset, reset),
    ]
}

fn field(name: &str, value: impl ToString) -> HeaderValue {
    HeaderValue {
        key: name.to_owned(),
        value: value.to_string(),
        ..HeaderValue::default()
    }
}
