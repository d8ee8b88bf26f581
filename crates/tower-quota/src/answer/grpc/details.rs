//! The details of a status, for `grpc-status-details-bin`: a `google.rpc.Status` with the messages of
//! `google/rpc/error_details.proto` that say when to retry, which quotas were exceeded, and what kind of error it is.

use core::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::header::HeaderValue;
use tower_quota_core::{LimitStatus, Name, Outcome};

use super::super::refusal::{Reason, Refused};
use super::protobuf::Message;

/// The most the details may take. In base64 that is 4 KiB, half of what servers and proxies allow all headers together.
const MOST_BYTES: usize = 3_072;

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";
const QUOTA_FAILURE: &str = "type.googleapis.com/google.rpc.QuotaFailure";
const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";

/// The field of a `google.rpc.Status` that holds its details.
const DETAILS: u64 = 3;

/// The field's value: base64 without padding. `None` when even the message alone is too long.
pub(super) fn value(refused: &Refused<'_>, code: u64, message: &str, domain: Name) -> Option<HeaderValue> {
    let mut status = Message::default().integer(1, code).string(2, message).any(
        DETAILS,
        ERROR_INFO,
        &Message::default().string(1, reason(refused.reason())).string(2, domain.as_str()),
    );
    if let Some(wait) = refused.retry_after() {
        // Clients that do not find this one do not retry.
        status = status.any(DETAILS, RETRY_INFO, &Message::default().message(1, &duration(wait)));
    }
    let violations = violations(refused, MOST_BYTES.saturating_sub(status.len()));
    if violations.len() > 0 {
        status = status.any(DETAILS, QUOTA_FAILURE, &violations);
    }
    if status.len() > MOST_BYTES {
        return None;
    }
    HeaderValue::try_from(STANDARD_NO_PAD.encode(status.as_bytes())).ok()
}

/// What kind of error it is, for programs (`ErrorInfo.reason`).
const fn reason(reason: Reason<'_>) -> &'static str {
    match reason {
        Reason::OverQuota(_) => "RATE_LIMIT_EXCEEDED",
        Reason::NeverFits(_) => "COST_ABOVE_RATE_LIMIT",
        Reason::MissingKey(_) => "RATE_LIMIT_KEY_MISSING",
        Reason::Blocked => "CLIENT_BLOCKED",
        Reason::StoreFailure(_) => "RATE_LIMIT_UNAVAILABLE",
    }
}

/// A `QuotaFailure` with the limits that refuse, as many as there is room for.
fn violations(refused: &Refused<'_>, room: usize) -> Message {
    // Of an `Any`: the type's name, two tags, three lengths.
    let room = room.saturating_sub(QUOTA_FAILURE.len() + 12);
    let mut all = Message::default();
    for standing in refused.statuses() {
        let violation = violation(standing);
        if all.len() + violation.len() + 4 > room {
            break;
        }
        all = all.message(1, &violation);
    }
    all
}

/// A `QuotaFailure.Violation`: subject, description, `quota_id` and `quota_value`.
fn violation(standing: &LimitStatus) -> Message {
    let name = standing.name;
    let description = match standing.outcome {
        Outcome::Never => format!("The request costs more than the limit \"{name}\" can ever admit."),
        _ => format!("Over the limit \"{name}\"."),
    };
    Message::default()
        .string(1, &format!("limit:{name}"))
        .string(2, &description)
        .string(5, name.as_str())
        .integer(7, standing.limit)
}

/// A `google.protobuf.Duration`, which spans at most 10,000 years.
fn duration(span: Duration) -> Message {
    const LONGEST: u64 = 315_576_000_000;
    Message::default().integer(1, span.as_secs().min(LONGEST)).integer(2, u64::from(span.subsec_nanos()))
}
