//! Refusals in gRPC's own way: a Trailers-Only response, which clients may retry (gRPC over HTTP/2; gRFC A6).

mod details;
mod protobuf;

use core::fmt::Write;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE};
use http::{Method, Response, Version};
use tower_quota_core::Name;

use super::refusal::{Reason, Refused};
use crate::head::RequestHead;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

const INVALID_ARGUMENT: u64 = 3;
const PERMISSION_DENIED: u64 = 7;
const RESOURCE_EXHAUSTED: u64 = 8;
const UNAVAILABLE: u64 = 14;

/// How the content types of gRPC-Web begin, and no others.
const WEB: &str = "application/grpc-web";

/// The content types of gRPC and gRPC-Web, longest first where one begins another.
const TYPES: [&str; 7] = [
    "application/grpc-web-text+proto",
    "application/grpc-web-text",
    "application/grpc-web+proto",
    "application/grpc-web",
    "application/grpc+proto",
    "application/grpc+json",
    "application/grpc",
];

/// The content type of a gRPC request, which its answer must have too. One of the known ones, so that nothing a client
/// sent is echoed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrpcType(&'static str);

impl GrpcType {
    /// The type of a request; `None` when it is not gRPC, whatever it says it is: calls are posted, and over HTTP/2 or
    /// later unless they are gRPC-Web, or were before an outer layer translated them, as that of tonic-web does: it says
    /// `te: trailers`. Others would get a refusal with status 200, which caches and monitors believe.
    pub(crate) fn of(head: RequestHead<'_>) -> Option<Self> {
        if head.method() != Method::POST {
            return None;
        }
        let sent = head.headers().get(CONTENT_TYPE)?.as_bytes();
        let begins = |known: &str| {
            sent.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known.as_bytes()))
                && matches!(sent.get(known.len()), None | Some(b'+' | b';' | b' '))
        };
        let known = TYPES.into_iter().find(|known| begins(known))?;
        let translated = || head.headers().get(TE).is_some_and(|te| te == "trailers");
        (head.version() >= Version::HTTP_2 || known.starts_with(WEB) || translated()).then_some(Self(known))
    }

    /// The answer to a refused request of this type, from this domain.
    pub(crate) fn respond(self, refused: &Refused<'_>, domain: Name) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.0));
        let (status, message) = (status(refused), refused.detail());
        headers.insert(STATUS, status.into());
        // Clients compare it with the message in the details: the two must be the same.
        if let Ok(message) = HeaderValue::try_from(percent_encoded(&message)) {
            headers.insert(MESSAGE, message);
        }
        if let Some(details) = details::value(refused, status, &message, domain) {
            headers.insert(DETAILS, details);
        }
        push_back(refused, headers);
        response
    }
}

fn status(refused: &Refused<'_>) -> u64 {
    match refused.reason() {
        Reason::OverQuota(_) | Reason::NeverFits(_) => RESOURCE_EXHAUSTED,
        Reason::MissingKey(_) => INVALID_ARGUMENT,
        Reason::Blocked => PERMISSION_DENIED,
        Reason::StoreFailure(_) => UNAVAILABLE,
    }
}

/// Tells clients that retry by themselves how long to wait: signed 32-bit milliseconds, rounded up. A negative number
/// tells them not to.
fn push_back(refused: &Refused<'_>, headers: &mut HeaderMap) {
    let value = match refused.retry_after() {
        Some(wait) => {
            let millis = wait.as_nanos().div_ceil(1_000_000);
            HeaderValue::from(i32::try_from(millis).unwrap_or(i32::MAX))
        }
        None => HeaderValue::from_static("-1"),
    };
    headers.insert(PUSHBACK, value);
}

/// Everything but printable ASCII, and the percent sign, as `%XX` of its UTF-8 bytes.
fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' | ..b' ' | 0x7f.. => {
                // Writing to a string cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
            _ => out.push(char::from(byte)),
        }
    }
    out
}
