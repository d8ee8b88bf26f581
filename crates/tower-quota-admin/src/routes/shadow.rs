use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde::Serialize;
use tower_quota_live::{ChangeError, ShadowReport, ShadowTotal, VersionInfo};
use utoipa::ToSchema;

use crate::api::Api;
use crate::change::{Change, ChangeHeaders};
use crate::extract::Json;
use crate::precondition::{Expected, tag};
use crate::problem::{Problem, ProblemKind, Result};

/// The shadow document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShadowState {
    #[serde(flatten)]
    version: VersionInfo,
    /// The differences in outcomes on this instance, absent if it does not count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    differences: Option<ShadowReport>,
    /// The sum over all instances that share the store, absent while the store does not answer.
    /// Counts of other instances are at most a poll old.
    #[serde(skip_serializing_if = "Option::is_none")]
    all_instances: Option<ShadowTotal>,
}

/// Returns the shadow document, with the differences on this instance and on all instances. The
/// ETag is its version.
#[utoipa::path(
    get, path = "/v1/rules/shadow", operation_id = "shadow",
    responses((status = 200, body = ShadowState, headers(("ETag" = String))), (status = 404)),
)]
pub(crate) async fn get(State(api): State<Api>) -> Result<Response> {
    let version = api.live.state().shadow.ok_or_else(none)?;
    let number = version.number;
    let differences = api.live.shadow().filter(|report| report.version == number);
    let of_all = api.live.shadow_of_all().await.ok().flatten();
    let all_instances = of_all.filter(|total| total.report.version == number);
    let tag = tag(number, &version.hash);
    let state = ShadowState {
        version,
        differences,
        all_instances,
    };
    Ok(([(header::ETAG, tag)], Json(state)).into_response())
}

/// Puts the shadow document in force.
#[utoipa::path(
    post, path = "/v1/rules/shadow/promote", operation_id = "promote",
    params(("If-Match" = String, Header, pattern = "^(\"[0-9]{1,9}-[0-9a-f]{32}\"|[*])$", description = "The ETag of the shadow document."), ChangeHeaders),
    responses((status = 204), (status = 403), (status = 404), (status = 409), (status = 412), (status = 428)),
)]
pub(crate) async fn promote(
    State(api): State<Api>,
    change: Change,
    expected: Expected,
) -> Result<StatusCode> {
    let number = shadow(&api, expected).await?;
    let promoted = api.live.promote(number, change.by()).await;
    promoted.map_err(ended)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes the shadow document.
#[utoipa::path(
    delete, path = "/v1/rules/shadow", operation_id = "abandon",
    params(("If-Match" = String, Header, pattern = "^(\"[0-9]{1,9}-[0-9a-f]{32}\"|[*])$", description = "The ETag of the shadow document."), ChangeHeaders),
    responses((status = 204), (status = 403), (status = 404), (status = 409), (status = 412), (status = 428)),
)]
pub(crate) async fn abandon(
    State(api): State<Api>,
    change: Change,
    expected: Expected,
) -> Result<StatusCode> {
    let number = shadow(&api, expected).await?;
    let abandoned = api.live.abandon(number, change.by()).await;
    abandoned.map_err(ended)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn shadow(api: &Api, expected: Expected) -> Result<u64> {
    match expected.number(api).await? {
        Some(0) => Err(Problem::new(
            ProblemKind::VersionChanged,
            "`If-None-Match: *` names no shadow document",
        )),
        // Let the store decide, because this instance may not know yet that the shadow document has
        // ended.
        Some(number) => Ok(number),
        None => Ok(api.live.state().shadow.ok_or_else(none)?.number),
    }
}

fn none() -> Problem {
    Problem::not_found("there is no shadow document")
}

fn ended(error: ChangeError) -> Problem {
    let problem = Problem::from(error);
    if problem.kind() != ProblemKind::VersionChanged {
        return problem;
    }
    let detail = "this shadow document has ended, or another has taken its place: read it again";
    Problem::new(ProblemKind::Conflict, detail)
}
