use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tower_quota_live::{VersionFate, VersionInfo};
use tower_quota_rules::Difference;
use utoipa::{IntoParams, ToSchema};

use super::document::{expecting, in_force, put_version, text};
use crate::api::{Api, CheckPlace};
use crate::change::{Change, ChangeHeaders};
use crate::extract::{Json, Path, Query};
use crate::hide::{SeesKeys, hide_difference};
use crate::precondition::Expected;
use crate::problem::{Problem, Result};

/// A number of versions that is larger than any source keeps.
const ALL_VERSIONS: u16 = 1_000;

const MOST_DIFFERENCES: usize = 1_000;

/// The versions in the source, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct History {
    versions: Vec<HistoryVersion>,
    /// The version to base a change on. If it is invalid, an earlier version is in force.
    current: Option<u64>,
}

/// A version, and what this instance has done with it since its start.
#[derive(Debug, Serialize, ToSchema)]
struct HistoryVersion {
    #[serde(flatten)]
    version: VersionInfo,
    #[serde(flatten)]
    fate: VersionFate,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct MostQuery {
    /// The most entries to list.
    #[param(minimum = 1, maximum = 1000)]
    count: Option<u16>,
}

impl MostQuery {
    pub(crate) fn or(&self, default: u16) -> Result<usize> {
        Ok(self.most()?.unwrap_or(default.into()))
    }

    pub(crate) fn most(&self) -> Result<Option<usize>> {
        match self.count {
            None => Ok(None),
            Some(most @ 1..=1_000) => Ok(Some(most.into())),
            Some(most) => Err(Problem::invalid(format_args!(
                "count={most} is out of range: list 1 to 1000"
            ))),
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DiffQuery {
    /// The earlier version.
    from: u64,
    /// The later version. The default is the version in force.
    to: Option<u64>,
}

/// The differences between two versions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Diff {
    from: u64,
    to: u64,
    /// The first 1,000 differences.
    differences: Vec<Difference>,
    /// The number of further differences.
    more: usize,
    /// The names of the limits that the later version lacks.
    lost_limits: Vec<String>,
}

/// The version to restore.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RollbackBody {
    version: u64,
}

/// Lists the versions in the source without their texts, the newest first.
#[utoipa::path(
    get, path = "/v1/rules/history", operation_id = "history", params(MostQuery),
    responses((status = 200, body = History)),
)]
pub(crate) async fn history(
    State(api): State<Api>,
    Query(query): Query<MostQuery>,
) -> Result<Json<History>> {
    let versions = api.live.history(query.or(ALL_VERSIONS)?).await?.into_iter();
    let with_fate = |version| HistoryVersion {
        fate: api.live.fate(&version),
        version,
    };
    Ok(Json(History {
        versions: versions.map(with_fate).collect(),
        current: api.live.stored().await?.current,
    }))
}

/// Returns the text of a version.
#[utoipa::path(
    get, path = "/v1/rules/{version}", operation_id = "version",
    params(("version" = u64, Path, description = "The number of a version.")),
    responses(
        (status = 200, headers(("ETag" = String)), content_type = "application/yaml", body = Object),
        (status = 404),
    ),
)]
pub(crate) async fn version(
    State(api): State<Api>,
    sees_keys: SeesKeys,
    Path(number): Path<u64>,
) -> Result<Response> {
    let version = api.version(number).await?;
    Ok(text(sees_keys.version(&api, version).await?))
}

/// Lists the differences between two versions, by path.
#[utoipa::path(
    get, path = "/v1/rules/diff", operation_id = "diff", params(DiffQuery),
    responses((status = 200, body = Diff), (status = 404), (status = 422), (status = 429)),
)]
pub(crate) async fn diff(
    State(api): State<Api>,
    _place: CheckPlace,
    sees_keys: SeesKeys,
    Query(DiffQuery { from, to }): Query<DiffQuery>,
) -> Result<Json<Diff>> {
    let before = api.version(from).await?;
    let after = match to {
        Some(to) => api.version(to).await?,
        None => in_force(&api)?.version.clone(),
    };
    let to = after.number;
    let mut hidden = sees_keys.hidden(&api, &before).await?;
    hidden.extend(sees_keys.hidden(&api, &after).await?);
    let compared = api.live.differences(before, after, MOST_DIFFERENCES);
    let compared = compared.await?;
    let differences = compared.differences.into_iter();
    let differences = differences.map(|difference| hide_difference(difference, &hidden));
    Ok(Json(Diff {
        from,
        to,
        differences: differences.collect(),
        more: compared.more,
        lost_limits: compared.lost_limits,
    }))
}

/// Puts the text of an earlier version in force again, as a new version.
#[utoipa::path(
    post, path = "/v1/rules/rollback", operation_id = "rollback", request_body = RollbackBody,
    params(("If-Match" = String, Header, pattern = "^(\"[0-9]{1,9}-[0-9a-f]{32}\"|[*])$", description = "The ETag of the rules that the change is made from, or `*`."), ChangeHeaders),
    responses(
        (status = 200, body = super::document::PutVersion, headers(("ETag" = String))),
        (status = 403), (status = 404), (status = 412), (status = 422), (status = 428),
    ),
)]
pub(crate) async fn rollback(
    State(api): State<Api>,
    change: Change,
    expected: Expected,
    Json(RollbackBody { version }): Json<RollbackBody>,
) -> Result<Response> {
    let (number, before) = (expected.number(&api).await?, api.live.in_force());
    let put = api.live.rollback(number, version, change.by()).await;
    Ok(put_version(
        &api,
        before.as_deref(),
        &expecting(number, put)?,
    ))
}
