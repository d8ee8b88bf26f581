use axum::extract::State;
use serde::Serialize;
use tower_quota_live::ChangeError;
use tower_quota_rules::{Problems, TestReport};

use crate::api::{Api, CheckPlace};
use crate::body::DocumentBody;
use crate::extract::Json;
use crate::problem::Result;

#[derive(Serialize)]
pub(crate) struct CheckReport {
    valid: bool,
    #[serde(flatten)]
    problems: Problems,
    #[serde(skip_serializing_if = "Option::is_none")]
    tests: Option<TestReport>,
}

/// Checks a document and runs its tests, without a change.
pub(crate) async fn check(
    State(api): State<Api>,
    CheckPlace(place): CheckPlace,
    DocumentBody(text): DocumentBody,
) -> Result<Json<CheckReport>> {
    let live = api.live.clone();
    let check = place.hold(async move { live.check(text).await });
    Ok(Json(match check.await? {
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
