use axum::extract::{FromRequest, Request};
use http::{HeaderMap, header};
use tower_quota_rules::Format;

use crate::problem::{Problem, ProblemKind, Result};

/// The text of a document, in the format of the content type.
///
/// HTML forms cannot send these content types.
pub(crate) struct DocumentBody {
    pub(crate) text: String,
    pub(crate) format: Format,
}

impl<S: Send + Sync> FromRequest<S> for DocumentBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let format = format_of(request.headers()).ok_or_else(|| {
            let detail = "send the rules as `Content-Type: application/yaml` or `application/json`, and convert TOML by `yq -p toml -o yaml`";
            Problem::new(ProblemKind::UnsupportedType, detail)
        })?;
        let bytes = axum::body::Bytes::from_request(request, state).await?;
        let text = String::from_utf8(bytes.into()).map_err(|error| {
            let position = error.utf8_error().valid_up_to();
            Problem::invalid(format_args!(
                "the body is not UTF-8: the byte at {position} begins no character"
            ))
        })?;
        Ok(Self { text, format })
    }
}

fn format_of(headers: &HeaderMap) -> Option<Format> {
    Format::of_content_type(headers.get(header::CONTENT_TYPE)?.to_str().ok()?)
}
