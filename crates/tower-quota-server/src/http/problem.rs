use core::fmt::Display;

use axum::body::{Body, Bytes};
use axum::response::IntoResponse;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;

/// An error of a call, as problem details (RFC 9457).
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: String,
}

impl Problem {
    /// The detail is the error, a colon and the fix.
    pub(crate) fn new(status: StatusCode, detail: impl Display) -> Self {
        Self {
            status,
            detail: detail.to_string(),
        }
    }

    pub(crate) fn bad_request(detail: impl Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// An error of a value in a readable call.
    pub(crate) fn invalid(detail: impl Display) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }
}

impl From<Problem> for Response<Bytes> {
    fn from(problem: Problem) -> Self {
        let body = json!({
            "type": "about:blank",
            "title": problem.status.canonical_reason(),
            "status": problem.status.as_u16(),
            "detail": problem.detail,
        });
        let mut response = Response::new(Bytes::from(body.to_string()));
        *response.status_mut() = problem.status;
        let headers = response.headers_mut();
        let mut insert = |name, text| headers.insert(name, HeaderValue::from_static(text));
        insert(header::CONTENT_TYPE, "application/problem+json");
        insert(header::CACHE_CONTROL, "no-store");
        if problem.status == StatusCode::UNAUTHORIZED {
            insert(header::WWW_AUTHENTICATE, "Bearer realm=\"tower-quota\"");
        }
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> axum::response::Response {
        Response::from(self).map(Body::from)
    }
}
