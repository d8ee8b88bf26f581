//! Sets a deadline and protective headers for all requests.

use core::time::Duration;
use std::sync::Arc;

use axum::extract::{MatchedPath, Query, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, Method, Uri, header};
use serde_json::Value;

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
    const FIELDS: [(HeaderName, &str); 3] = [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in FIELDS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Keep the policy of the page, which differs.
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(policy);
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

/// Refuses query parameters that the OpenAPI document does not list, such as a mistyped `newest`.
pub(crate) async fn parameters(
    State(document): State<Arc<Value>>,
    request: Request,
    next: Next,
) -> Result<Response> {
    if let Some(name) = unknown_parameter(&document, &request) {
        return Err(Problem::invalid(format_args!(
            "there is no query parameter `{name}` here: see /v1/openapi.json"
        )));
    }
    Ok(next.run(request).await)
}

fn unknown_parameter(document: &Value, request: &Request) -> Option<String> {
    let path = request.extensions().get::<MatchedPath>()?;
    // Compare the ends of paths, because an application may nest the router under a prefix.
    let mut paths = document["paths"].as_object()?.iter();
    let (_, item) = paths.find(|(known, _)| path.as_str().ends_with(known.as_str()))?;
    let method = match request.method() {
        &Method::HEAD => "get".to_owned(),
        method => method.as_str().to_lowercase(),
    };
    let operation = item.get(method)?;
    let known = operation["parameters"].as_array().into_iter().flatten();
    let known = known.filter(|known| known["in"] == "query");
    let Query(sent) = Query::<Vec<(String, String)>>::try_from_uri(request.uri()).ok()?;
    let mut names = sent.into_iter().map(|(name, _)| name);
    names.find(|name| !known.clone().any(|known| known["name"] == *name))
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
