//! A deadline and protective headers for all requests.

use core::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, Method, Uri, header};

use crate::problem::{Problem, ProblemKind, Result};

/// Answers with 503 if the handler and its body take longer.
pub(crate) async fn timeout(
    State(longest): State<Duration>,
    request: Request,
    next: Next,
) -> Response {
    tokio::time::timeout(longest, next.run(request)).await.unwrap_or_else(|_| {
        let detail =
            format_args!("no answer within {longest:?}: a change may have been made, so read before you repeat it");
        Problem::new(ProblemKind::Timeout, detail).into_response()
    })
}

/// Forbids caches, frames, scripts and content sniffing.
///
/// Without CORS headers, pages of other origins cannot read answers or send JSON.
pub(crate) async fn headers(request: Request, next: Next) -> Response {
    const FIELDS: [(HeaderName, &str); 4] = [
        (header::CACHE_CONTROL, "no-store"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let mut response = next.run(request).await;
    for (name, value) in FIELDS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Answers requests about documents with 404 if the live rules follow no store.
pub(crate) async fn documents(
    State(follows_store): State<bool>,
    request: Request,
    next: Next,
) -> Result<Response> {
    let mut parts = ["/v1/rules", "/v1/blocks", "/v1/overrides", "/v1/explain"].into_iter();
    if !follows_store && parts.any(|part| request.uri().path().starts_with(part)) {
        let detail = "the code of this service makes its policy: start `LiveRules` to change rules and to block";
        return Err(Problem::not_found(detail));
    }
    Ok(next.run(request).await)
}

pub(crate) async fn unknown_path(uri: Uri) -> Problem {
    Problem::not_found(format_args!(
        "there is no {}: see /v1/openapi.json",
        uri.path()
    ))
}

pub(crate) async fn unknown_method(method: Method) -> Problem {
    let detail = format_args!("this path has no {method}: the field `Allow` lists its methods");
    Problem::new(ProblemKind::MethodNotAllowed, detail)
}
