use core::fmt::Write;

use http::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};

use super::reason::Reason;
use super::refusal_body::RefusalBody;
use super::refused::Refused;

pub(super) const TYPICAL_FIELDS: usize = 12;

/// Answers with problem details (RFC 9457), the default of [`on_refused`](crate::RateLimitLayer::on_refused).
///
/// The `application/problem+json` body names the limits and the time to retry, and lists refusing limits in
/// `violated-policies`.
#[must_use]
pub fn problem_details(refused: &Refused<'_>) -> Response<RefusalBody> {
    let mut response = Response::new(json(refused).into());
    *response.status_mut() = refused.status();
    let headers = response.headers_mut();
    headers.reserve(TYPICAL_FIELDS);
    headers.insert(
        CONTENT_TYPE,
        const { HeaderValue::from_static("application/problem+json") },
    );
    add_missing(refused, headers);
    response
}

pub(super) fn add_missing(refused: &Refused<'_>, headers: &mut HeaderMap) {
    headers
        .entry(CACHE_CONTROL)
        .or_insert(const { HeaderValue::from_static("no-store") });
    if let Some(seconds) = refused.retry_after_secs() {
        headers.entry(RETRY_AFTER).or_insert_with(|| seconds.into());
    }
}

fn json(refused: &Refused<'_>) -> String {
    let (kind, title) = type_and_title(refused);
    let status = refused.status().as_u16();
    let mut json = String::with_capacity(384);
    // Writing to a string cannot fail.
    _ = write!(
        json,
        r#"{{"type":"{kind}","title":"{title}","status":{status},"detail":""#
    );
    push_escaped(&mut json, &refused.detail());
    let mut begin = "\",\"violated-policies\":[\"";
    for name in refused.limits() {
        json.push_str(begin);
        push_escaped(&mut json, name.as_str());
        begin = "\",\"";
    }
    json.push_str(match refused.decision() {
        Some(_) => "\"]}",
        None => "\"}",
    });
    json
}

/// Returns the type and title by draft-ietf-httpapi-ratelimit-headers-11, section 5, or RFC 9457,
/// section 4.2.1.
fn type_and_title(refused: &Refused<'_>) -> (&'static str, &'static str) {
    match refused.reason() {
        Reason::OverQuota(_) => (
            "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "Request cannot be satisfied as assigned quota has been exceeded",
        ),
        Reason::StoreFailure(_) => (
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
            "Request cannot be satisfied due to temporary server capacity constraints",
        ),
        _ => (
            "about:blank",
            refused.status().canonical_reason().unwrap_or("Refused"),
        ),
    }
}

/// Appends a text, escaped by RFC 8259, section 7.
fn push_escaped(json: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            ..' ' => _ = write!(json, "\\u{:04x}", u32::from(character)),
            _ => json.push(character),
        }
    }
}
