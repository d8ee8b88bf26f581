//! Refusals as problem details.

use core::fmt::Write;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

use super::refusal::{Reason, Refusal, Refused};

/// The problem types of draft-ietf-httpapi-ratelimit-headers-11, section 5.
const QUOTA_EXCEEDED: Problem = Problem {
    uri: "https://iana.org/assignments/http-problem-types#quota-exceeded",
    title: "Request cannot be satisfied as assigned quota has been exceeded",
};
const REDUCED_CAPACITY: Problem = Problem {
    uri: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
    title: "Request cannot be satisfied due to temporary server capacity constraints",
};
/// Problems that their status says all about (RFC 9457, section 4.2.1).
const MISSING_KEY: Problem = Problem { uri: "about:blank", title: "Bad Request" };
const BLOCKED: Problem = Problem { uri: "about:blank", title: "Forbidden" };

/// Answers with problem details (RFC 9457): `application/problem+json` with a type, a title, the status, a sentence
/// that names the limit and when to retry, and `violated-policies`, the names of the limits that refuse.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProblemDetails;

impl Refusal for ProblemDetails {
    fn respond(&self, refused: &Refused<'_>) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(body(refused)));
        *response.status_mut() = refused.status();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}

struct Problem {
    uri: &'static str,
    title: &'static str,
}

fn body(refused: &Refused<'_>) -> String {
    let problem = match refused.reason() {
        Reason::OverQuota(_) | Reason::NeverFits(_) => QUOTA_EXCEEDED,
        Reason::MissingKey(_) => MISSING_KEY,
        Reason::Blocked => BLOCKED,
        Reason::StoreFailure(_) => REDUCED_CAPACITY,
    };
    let mut json = String::with_capacity(320);
    json.push_str("{\"type\":");
    push_string(&mut json, problem.uri);
    json.push_str(",\"title\":");
    push_string(&mut json, problem.title);
    json.push_str(",\"status\":");
    json.push_str(StatusCode::as_str(&refused.status()));
    json.push_str(",\"detail\":");
    push_string(&mut json, &refused.detail());
    if refused.decision().is_some() {
        json.push_str(",\"violated-policies\":[");
        for (i, name) in refused.limits().enumerate() {
            if i > 0 {
                json.push(',');
            }
            push_string(&mut json, name.as_str());
        }
        json.push(']');
    }
    json.push('}');
    json
}

/// Appends a JSON string (RFC 8259, section 7).
fn push_string(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\0'..='\x1f' => {
                // Writing to a string cannot fail.
                let _ = write!(json, "\\u{:04x}", u32::from(character));
            }
            _ => json.push(character),
        }
    }
    json.push('"');
}
