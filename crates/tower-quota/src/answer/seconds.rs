//! Spans and instants as clients are told of them: whole seconds, rounded up.

use core::time::Duration;

use tower_quota_core::Timestamp;

/// Seconds, rounded up: a wait is never told shorter than it is.
pub(crate) fn whole_seconds(span: Duration) -> u64 {
    span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0))
}

/// The second of the Unix epoch in which a span after an instant has passed, on the clock of whoever told the instant.
pub(super) fn epoch_second(at: Timestamp, span: Duration) -> u64 {
    whole_seconds(Duration::from_micros(at.as_micros()).saturating_add(span))
}
