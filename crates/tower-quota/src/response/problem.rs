use core::fmt::Write;

use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};

use super::reason::Reason;
use super::refusal::{Refusal, TYPICAL_FIELDS, add_missing};
use super::refusal_body::RefusalBody;
use super::refused::Refused;

/// Answers with problem details (RFC 9457).
///
/// The `application/problem+json` body names the limits and the time to retry, and lists refusing limits in
/// `violated-policies`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProblemDetails;

impl Refusal for ProblemDetails {
    fn respond(&self, refused: &Refused<'_>) -> Response<RefusalBody> {
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

/// From draft-ietf-httpapi-ratelimit-headers-11, section 5, or RFC 9457, section 4.2.1.
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

/// Escapes by RFC 8259, section 7.
fn push_escaped(json: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            ..' ' => _ = write!(json, "\\u{:04x}", u32::from(character)),
            _ => json.push(character),
        }
    }
}
