//! Earlier versions: their list, their texts, what changed between them, and the way back.

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tower_quota_rules::live::{ChangeError, Version, VersionInfo};
use tower_quota_rules::{Difference, Rules};
use utoipa::{IntoParams, ToSchema};

use super::document::{put_version, text};
use crate::api::Api;
use crate::change::{Change, ChangeParams};
use crate::extract::{Json, Path, Query};
use crate::problem::{Problem, Result};

/// More versions than a source keeps.
const ALL_VERSIONS: u16 = 1_000;

/// The versions that the source keeps, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct History {
    versions: Vec<VersionInfo>,
}

/// The number of versions or records to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct MostQuery {
    /// The most to list.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
}

impl MostQuery {
    /// Returns the number, or the default.
    pub(crate) fn or(&self, default: u16) -> Result<usize> {
        Ok(self.most()?.unwrap_or(default.into()))
    }

    /// Returns the number, if it is given.
    pub(crate) fn most(&self) -> Result<Option<usize>> {
        match self.limit {
            None => Ok(None),
            Some(most @ 1..=1_000) => Ok(Some(most.into())),
            Some(most) => Err(Problem::invalid(format_args!(
                "limit={most} is out of range: list 1 to 1000"
            ))),
        }
    }
}

/// Two versions to compare.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DiffQuery {
    /// The earlier version.
    from: u64,
    /// The later version. The default is the one in force.
    to: Option<u64>,
}

/// The differences between two versions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Diff {
    from: u64,
    to: u64,
    differences: Vec<Difference>,
}

/// The version to return to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RollbackBody {
    version: u64,
}

/// Lists the versions that the source keeps, the newest first, without their texts.
#[utoipa::path(
    get, path = "/v1/rules/history", operation_id = "history", params(MostQuery),
    responses((status = 200, body = History)),
)]
pub(crate) async fn history(
    State(api): State<Api>,
    Query(query): Query<MostQuery>,
) -> Result<Json<History>> {
    Ok(Json(History {
        versions: api.live.history(query.or(ALL_VERSIONS)?).await?,
    }))
}

/// Returns the text of a version.
#[utoipa::path(
    get, path = "/v1/rules/{version}", operation_id = "version",
    params(("version" = u64, Path, description = "The number of a version.")),
    responses(
        (status = 200, headers(("ETag" = String)), content(
            (Object = "application/yaml"), (Object = "application/json"),
        )),
        (status = 404),
    ),
)]
pub(crate) async fn version(State(api): State<Api>, Path(number): Path<u64>) -> Result<Response> {
    let version = api.live.version(number).await?;
    Ok(text(version.number, version.format, version.text))
}

/// Lists what changed between two versions, by path.
#[utoipa::path(
    get, path = "/v1/rules/diff", operation_id = "diff", params(DiffQuery),
    responses((status = 200, body = Diff), (status = 404), (status = 422)),
)]
pub(crate) async fn diff(
    State(api): State<Api>,
    Query(DiffQuery { from, to }): Query<DiffQuery>,
) -> Result<Json<Diff>> {
    let before = api.live.version(from).await?;
    let after = match to {
        Some(to) => api.live.version(to).await?,
        None => api
            .live
            .current()
            .await?
            .ok_or_else(|| Problem::not_found("there are no rules yet"))?,
    };
    let to = after.number;
    let (before, after) = (read(&api, before).await?, read(&api, after).await?);
    Ok(Json(Diff {
        from,
        to,
        differences: before.document().differences(after.document()),
    }))
}

/// Puts the text of an earlier version in force again, as a new version.
#[utoipa::path(
    post, path = "/v1/rules/rollback", operation_id = "rollback", params(ChangeParams), request_body = RollbackBody,
    responses(
        (status = 200, body = super::document::PutVersion, headers(("ETag" = String))),
        (status = 403), (status = 404), (status = 422),
    ),
)]
pub(crate) async fn rollback(
    State(api): State<Api>,
    change: Change,
    Json(RollbackBody { version }): Json<RollbackBody>,
) -> Result<Response> {
    let version = api.live.rollback(version, change.by()).await?;
    Ok(put_version(&api, &version))
}

async fn read(api: &Api, version: Version) -> Result<Rules> {
    let rules = api.live.read(version.text, version.format).await?;
    rules.map_err(|problems| Problem::from(ChangeError::Invalid(problems)))
}
