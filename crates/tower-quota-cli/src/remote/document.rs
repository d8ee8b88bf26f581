use http::header::CONTENT_TYPE;
use http::{Request, Response};
use tower_quota_rules::Format;

use super::Api;
use super::api::version;
use crate::failure::Failure;
use crate::rules::load::RulesText;

/// Returns the text of a version, or of the version in force.
pub(crate) fn version_text(api: &Api, number: Option<u64>) -> Result<RulesText, Failure> {
    let answer = document(api, number)?;
    let content_type = answer.headers().get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    Ok(RulesText {
        name: format!("version {}", version(&answer).unwrap_or_default()),
        format: content_type
            .and_then(Format::of_content_type)
            .unwrap_or(Format::Yaml),
        text: answer.into_body(),
    })
}

pub(super) fn document(api: &Api, number: Option<u64>) -> Result<Response<String>, Failure> {
    let path = number.map_or("/v1/rules".into(), |number| format!("/v1/rules/{number}"));
    api.send(Request::get(path), "")
}
