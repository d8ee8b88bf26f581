//! Roll-outs: another document beside the one in force, for some clients or as a dry run.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use tower_quota_rules::live::{CandidateState, Rollout, RolloutReport, RolloutTotal};
use utoipa::{IntoParams, ToSchema};

use super::document::{PutVersion, replace};
use crate::api::Api;
use crate::body::DocumentBody;
use crate::change::{Change, ChangeParams};
use crate::extract::{Json, Query};
use crate::precondition::{Expected, tag};
use crate::problem::{Problem, ProblemKind, Result};

/// The clients of a roll-out.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RolloutQuery {
    /// The percentage of the clients whose requests the document decides. Without it the roll-out is a dry run, which
    /// decides none.
    #[param(minimum = 1, maximum = 100)]
    percent: Option<u8>,
}

/// The roll-out under way.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RolloutState {
    #[serde(flatten)]
    candidate: CandidateState,
    /// The differences in outcomes that this instance has seen; absent if it does not count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    differences: Option<RolloutReport>,
    /// The sum over all instances that share the store, and their number. It is absent while the store does not answer.
    /// Counts of other instances are at most a poll old.
    #[serde(skip_serializing_if = "Option::is_none")]
    all_instances: Option<RolloutTotal>,
}

/// Returns the roll-out under way, with the differences that this and all instances have seen. The ETag is its version.
#[utoipa::path(
    get, path = "/v1/rules/rollout", operation_id = "rollout",
    responses((status = 200, body = RolloutState, headers(("ETag" = String))), (status = 404)),
)]
pub(crate) async fn get(State(api): State<Api>) -> Result<Response> {
    let candidate = api.live.state().candidate.ok_or_else(none)?;
    let number = candidate.version.number;
    let differences = api
        .live
        .rollout()
        .filter(|report| report.candidate == number);
    let of_all = api.live.rollout_of_all().await.ok().flatten();
    let all_instances = of_all.filter(|total| total.report.candidate == number);
    let state = RolloutState {
        candidate,
        differences,
        all_instances,
    };
    Ok(([(header::ETAG, tag(number))], Json(state)).into_response())
}

/// Starts a roll-out: this document runs beside the one in force.
#[utoipa::path(
    put, path = "/v1/rules/rollout", operation_id = "start_rollout",
    params(
        RolloutQuery,
        ("If-Match" = Option<String>, Header, pattern = "^(\"[0-9]{1,9}\"|[*])$", description = "The ETag of the rules in force, or of the roll-out to replace."),
        ChangeParams,
    ),
    request_body(content((Object = "application/yaml"), (Object = "application/json"))),
    responses(
        (status = 200, body = PutVersion, headers(("ETag" = String))),
        (status = 403), (status = 409), (status = 412), (status = 422), (status = 428),
    ),
)]
pub(crate) async fn put(
    State(api): State<Api>,
    Query(query): Query<RolloutQuery>,
    change: Change,
    expected: Expected,
    document: DocumentBody,
) -> Result<Response> {
    let rollout = match query.percent {
        None => Rollout::DryRun,
        Some(percent @ 1..=100) => Rollout::Percent(percent),
        Some(percent) => {
            return Err(Problem::invalid(format_args!(
                "percent={percent} is out of range: 1 to 100"
            )));
        }
    };
    replace(&api, change, expected, document, Some(rollout)).await
}

/// Puts the document of the roll-out in force for all clients.
#[utoipa::path(
    post, path = "/v1/rules/rollout/promote", operation_id = "promote",
    params(("If-Match" = String, Header, pattern = "^(\"[0-9]{1,9}\"|[*])$", description = "The ETag of the roll-out."), ChangeParams),
    responses((status = 204), (status = 403), (status = 404), (status = 409), (status = 412), (status = 428)),
)]
pub(crate) async fn promote(
    State(api): State<Api>,
    change: Change,
    expected: Expected,
) -> Result<StatusCode> {
    api.live
        .promote(candidate(&api, expected)?, change.by())
        .await
        .map_err(ended)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends the roll-out: the rules in force decide for all clients again.
#[utoipa::path(
    delete, path = "/v1/rules/rollout", operation_id = "abandon",
    params(("If-Match" = String, Header, pattern = "^(\"[0-9]{1,9}\"|[*])$", description = "The ETag of the roll-out."), ChangeParams),
    responses((status = 204), (status = 403), (status = 404), (status = 409), (status = 412), (status = 428)),
)]
pub(crate) async fn abandon(
    State(api): State<Api>,
    change: Change,
    expected: Expected,
) -> Result<StatusCode> {
    api.live
        .abandon(candidate(&api, expected)?, change.by())
        .await
        .map_err(ended)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the candidate that a request is about.
fn candidate(api: &Api, expected: Expected) -> Result<u64> {
    let known = || {
        api.live
            .state()
            .candidate
            .map(|candidate| candidate.version.number)
            .ok_or_else(none)
    };
    match expected {
        // The store knows whether it still is the candidate; this instance may learn of it in a moment.
        Expected::Version(number) => Ok(number),
        Expected::Any => known(),
        Expected::None => Err(Problem::new(
            ProblemKind::VersionChanged,
            "`If-None-Match: *` names no roll-out",
        )),
    }
}

fn none() -> Problem {
    Problem::not_found("no roll-out is under way")
}

/// Says that the roll-out that a request is about has ended.
fn ended(problem: Problem) -> Problem {
    if problem.kind() != ProblemKind::VersionChanged {
        return problem;
    }
    Problem::new(
        ProblemKind::Conflict,
        "this roll-out has ended, or another has taken its place: read it again",
    )
}
