//! Refusals as problem details.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

use super::refusal::{Reason, Refusal, Refused};
use super::text::Text;

/// The problem types of draft-ietf-httpapi-ratelimit-headers-11, section 5.
const QUOTA_EXCEEDED: Problem = Problem {
    members: "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\
              \"title\":\"Request cannot be satisfied as assigned quota has been exceeded\",\"status\":",
    has_policies: true,
};
const REDUCED_CAPACITY: Problem = Problem {
    members: "{\"type\":\"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity\",\
              \"title\":\"Request cannot be satisfied due to temporary server capacity constraints\",\"status\":",
    has_policies: false,
};
/// Problems that their status says all about (RFC 9457, section 4.2.1).
const MISSING_KEY: Problem =
    Problem { members: "{\"type\":\"about:blank\",\"title\":\"Bad Request\",\"status\":", has_policies: false };
const BLOCKED: Problem =
    Problem { members: "{\"type\":\"about:blank\",\"title\":\"Forbidden\",\"status\":", has_policies: false };

/// Answers with problem details (RFC 9457): `application/problem+json` with a type, a title, the status, a sentence
/// that names the limit and when to retry, and `violated-policies`, the names of the limits that refuse.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProblemDetails;

impl Refusal for ProblemDetails {
    fn respond(&self, refused: &Refused<'_>) -> Response<Bytes> {
        let mut json = Text::new();
        write(refused, &mut json);
        let mut response = Response::new(json.into_bytes());
        *response.status_mut() = refused.status();
        response.headers_mut().insert(CONTENT_TYPE, PROBLEM_JSON.clone());
        response
    }
}

/// The media type.
pub(super) static PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

struct Problem {
    /// The type and the title, as members of an object.
    members: &'static str,
    has_policies: bool,
}

/// Appends the details, as JSON.
pub(super) fn write(refused: &Refused<'_>, json: &mut Text) {
    write_begin(refused, json);
    refused.write_retry(json);
    write_end(refused, json);
}

/// Appends what stands before the time to retry.
pub(super) fn write_begin(refused: &Refused<'_>, json: &mut Text) {
    json.extend(Problem::of(refused).members.as_bytes());
    json.extend(StatusCode::as_str(&refused.status()).as_bytes());
    json.extend(b",\"detail\":\"");
    refused.write_reason(json, b"\\\"", push_escaped);
}

/// Appends what stands behind the time to retry.
pub(super) fn write_end(refused: &Refused<'_>, json: &mut Text) {
    json.extend(b"\"");
    if Problem::of(refused).has_policies {
        let mut separator: &[u8] = b",\"violated-policies\":[\"";
        for name in refused.limits() {
            json.extend(core::mem::replace(&mut separator, b",\""));
            push_escaped(json, name.as_str());
            json.extend(b"\"");
        }
        json.extend(b"]");
    }
    json.extend(b"}");
}

impl Problem {
    const fn of(refused: &Refused<'_>) -> Self {
        match refused.reason() {
            Reason::OverQuota(_) | Reason::NeverFits(_) => QUOTA_EXCEEDED,
            Reason::MissingKey(_) => MISSING_KEY,
            Reason::Blocked => BLOCKED,
            Reason::StoreFailure(_) => REDUCED_CAPACITY,
        }
    }
}

/// Appends what stands between the quotes of a JSON string (RFC 8259, section 7).
fn push_escaped(json: &mut Text, text: &str) {
    let needs_escape = |byte: &u8| matches!(byte, b'"' | b'\\' | ..b' ');
    // Without an early end, which is for names that hardly exist, the loop takes many bytes at once.
    if !text.as_bytes().iter().fold(false, |needs, byte| needs | needs_escape(byte)) {
        return json.extend(text.as_bytes());
    }
    for byte in text.as_bytes() {
        match byte {
            b'"' | b'\\' => json.extend(&[b'\\', *byte]),
            ..b' ' => json.extend(format!("\\u{byte:04x}").as_bytes()),
            _ => json.extend(&[*byte]),
        }
    }
}
