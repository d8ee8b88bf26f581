use core::fmt::Display;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
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

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason(),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let mut response = (self.status, axum::Json(body)).into_response();
        let headers = response.headers_mut();
        let mut insert = |name, text| headers.insert(name, HeaderValue::from_static(text));
        insert(header::CONTENT_TYPE, "application/problem+json");
        insert(header::CACHE_CONTROL, "no-store");
        if self.status == StatusCode::UNAUTHORIZED {
            insert(header::WWW_AUTHENTICATE, "Bearer realm=\"tower-quota\"");
        }
        response
    }
}
