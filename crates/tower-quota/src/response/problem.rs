use http::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use smallvec::SmallVec;

use super::prepared_problem::{QUOTA_EXCEEDED, begin, end, prepared_json};
use super::reason::Reason;
use super::refusal_body::RefusalBody;
use super::refused::{MAX_NAMED_LIMITS, Refused};
use super::text::{number_value, push_escaped};

/// The number of fields for which a refusal has room, so that the map grows only once.
pub(super) const TYPICAL_FIELDS: usize = 12;

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

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
    let problem = const { HeaderValue::from_static("application/problem+json") };
    headers.insert(CONTENT_TYPE, problem);
    headers.insert(CACHE_CONTROL, NO_STORE);
    if let Some(seconds) = refused.retry_after_secs() {
        headers.insert(RETRY_AFTER, number_value(seconds));
    }
    response
}

/// Adds the fields of every refusal to your own response.
pub(super) fn add_missing(refused: &Refused<'_>, headers: &mut HeaderMap) {
    headers.entry(CACHE_CONTROL).or_insert(NO_STORE);
    if let Some(seconds) = refused.retry_after_secs() {
        headers
            .entry(RETRY_AFTER)
            .or_insert_with(|| number_value(seconds));
    }
}

fn json(refused: &Refused<'_>) -> String {
    if let Some(json) = prepared(refused) {
        return json;
    }
    let mut json = begin(type_and_title(refused), refused.status());
    push_escaped(&mut json, &refused.detail());
    if refused.decision().is_some() {
        end(&mut json, refused.limits());
    } else {
        json.push_str("\"}");
    }
    json
}

/// Returns the body from prepared names, if the plan has all names, and the detail has each name.
fn prepared(refused: &Refused<'_>) -> Option<String> {
    let (plan, seconds) = (refused.plan?, refused.retry_after_secs()?);
    let mut limits: SmallVec<[&str; MAX_NAMED_LIMITS]> = SmallVec::new();
    for limit in refused.limits() {
        if limits.len() == MAX_NAMED_LIMITS {
            return None;
        }
        limits.push(plan.texts.names.get(plan.position(limit)?)?);
    }
    // A failed store refuses by no limit.
    (!limits.is_empty()).then(|| prepared_json(&limits, seconds))
}

/// Returns the type and title by draft-ietf-httpapi-ratelimit-headers-11, section 5, or RFC 9457,
/// section 4.2.1.
fn type_and_title(refused: &Refused<'_>) -> (&'static str, &'static str) {
    match refused.reason() {
        Reason::OverQuota(_) => QUOTA_EXCEEDED,
        Reason::StoreFailure(_) | Reason::Overloaded(_) => (
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
            "Request cannot be satisfied due to temporary server capacity constraints",
        ),
        _ => (
            "about:blank",
            refused.status().canonical_reason().unwrap_or("Refused"),
        ),
    }
}
