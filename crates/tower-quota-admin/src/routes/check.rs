use axum::extract::State;
use serde::Serialize;
use tower_quota_live::ChangeError;
use tower_quota_rules::{Problems, TestReport};
use utoipa::ToSchema;

use crate::api::{Api, CheckPlace};
use crate::body::DocumentBody;
use crate::extract::Json;
use crate::problem::Result;

/// The result of a check.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckReport {
    /// True if the document has no errors and passes its tests.
    valid: bool,
    /// Errors and warnings, in the order of the text.
    #[serde(flatten)]
    problems: Problems,
    /// The results of the document's tests, absent if it has errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    tests: Option<TestReport>,
}

/// Checks a document and runs its tests, without a change.
#[utoipa::path(
    post, path = "/v1/rules/check", operation_id = "check",
    request_body(content((serde_json::Value = "application/yaml"), (serde_json::Value = "application/json"))),
    responses((status = 200, body = CheckReport), (status = 429)),
)]
pub(crate) async fn check(
    State(api): State<Api>,
    _place: CheckPlace,
    DocumentBody(text): DocumentBody,
) -> Result<Json<CheckReport>> {
    Ok(Json(match api.live.check(text).await {
        Ok((problems, tests)) => CheckReport {
            valid: tests.is_passed(),
            problems,
            tests: Some(tests),
        },
        Err(ChangeError::Invalid(problems)) => CheckReport {
            valid: false,
            problems,
            tests: None,
        },
        Err(error) => return Err(error.into()),
    }))
}
