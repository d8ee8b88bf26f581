use axum::extract::{FromRequest, Request};
use http::{HeaderMap, header};

use crate::problem::{Problem, ProblemKind, Result};

/// The media types of a document, which HTML forms cannot send. JSON is YAML too.
const MEDIA_TYPES: [&str; 2] = ["application/yaml", "application/json"];

/// The text of a document.
pub(crate) struct DocumentBody(pub(crate) String);

impl<S: Send + Sync> FromRequest<S> for DocumentBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        if !is_document(request.headers()) {
            let detail = "send the rules as `Content-Type: application/yaml` or `application/json`, and convert TOML by `yq -p toml -o yaml`";
            return Err(Problem::new(ProblemKind::UnsupportedType, detail));
        }
        let bytes = axum::body::Bytes::from_request(request, state).await?;
        let text = String::from_utf8(bytes.into()).map_err(|error| {
            let position = error.utf8_error().valid_up_to();
            Problem::invalid(format_args!(
                "the body is not UTF-8: the byte at {position} begins no character"
            ))
        })?;
        Ok(Self(text))
    }
}

fn is_document(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE);
    let value = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media_type = value.split(';').next().unwrap_or_default().trim();
    MEDIA_TYPES
        .iter()
        .any(|known| media_type.eq_ignore_ascii_case(known))
}
