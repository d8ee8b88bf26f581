//! Envoy's door in JSON, as envoyproxy/ratelimit serves it.

mod request;
mod response;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::{StatusCode, header};
use tonic::Code;
use tower_quota_core::Store;

use crate::envoy::EnvoyDoor;
use crate::http::{HttpOptions, Problem, expect_json, read};
use crate::messages::ratelimit::rate_limit_response;

struct Door<S> {
    envoy: EnvoyDoor<S>,
    options: HttpOptions,
}

/// Builds the route `/json`, over a service of Envoy.
///
/// The status is 200, or 429 over a limit. Like envoyproxy/ratelimit, the route answers 400 to a call that it cannot decide.
/// If the store fails and a limit has `on_store_failure: error`, the status is 503. A request of a browser, which has an
/// `Origin`, needs `Content-Type: application/json`.
pub fn json_router<S: Store>(envoy: EnvoyDoor<S>, options: &HttpOptions) -> Router {
    let door = Door {
        envoy,
        options: options.clone(),
    };
    Router::new()
        .route("/json", post(decide::<S>))
        .with_state(Arc::new(door))
}

async fn decide<S: Store>(
    State(door): State<Arc<Door<S>>>,
    request: Request,
) -> Result<Response, Problem> {
    let (fields, body) = read(request, &door.options).await?;
    // Only browsers send an origin. Other clients of envoyproxy/ratelimit may send any type.
    if fields.contains_key(header::ORIGIN) {
        expect_json(&fields)?;
    }
    let Some(request) = request::request(&body) else {
        return Ok(plain(StatusCode::BAD_REQUEST));
    };
    let response = match door.envoy.decide(&request).await {
        Ok(response) => response,
        Err(status) if status.code() == Code::Unavailable => {
            return Ok(plain(StatusCode::SERVICE_UNAVAILABLE));
        }
        Err(_) => return Ok(plain(StatusCode::BAD_REQUEST)),
    };
    let status = match response.overall_code() {
        rate_limit_response::Code::Ok => StatusCode::OK,
        rate_limit_response::Code::OverLimit => StatusCode::TOO_MANY_REQUESTS,
        rate_limit_response::Code::Unknown => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Ok((status, axum::Json(response::json(&response))).into_response())
}

/// Answers with the name of a status, as envoyproxy/ratelimit does.
fn plain(status: StatusCode) -> Response {
    let kind = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let name = status.canonical_reason().unwrap_or_default();
    (status, kind, format!("{name}\n")).into_response()
}
