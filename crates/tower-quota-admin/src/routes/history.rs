use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower_quota_live::{VersionFate, VersionInfo};

use super::count::CountQuery;
use super::document::{in_force, put_version, text};
use crate::api::{Api, ChangePlace, CheckPlace};
use crate::change::Change;
use crate::extract::{Json, Path, Query};
use crate::hide::{DocumentForm, ReadsKeys, without_problems};
use crate::precondition::Expected;
use crate::problem::HIDDEN_PROBLEMS;
use crate::problem::Result;

/// A number of versions that is larger than any source keeps.
const ALL_VERSIONS: usize = 1_000;

const MOST_DIFFERENCES: usize = 1_000;

#[derive(Serialize)]
struct HistoryVersion {
    #[serde(flatten)]
    version: VersionInfo,
    #[serde(flatten)]
    fate: VersionFate,
}

#[derive(Deserialize)]
pub(crate) struct DiffQuery {
    from: u64,
    to: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RollbackBody {
    version: u64,
}

/// Lists the versions in the source without their texts, the newest first.
pub(crate) async fn history(
    State(api): State<Api>,
    ReadsKeys(reads_keys): ReadsKeys,
    Query(query): Query<CountQuery>,
) -> Result<Json<Value>> {
    let mut versions = Vec::new();
    for version in api.live.history(query.or(ALL_VERSIONS)?).await? {
        let mut fate = api.live.fate(&version);
        if !reads_keys && let Some(reason) = &mut fate.rejected {
            *reason = HIDDEN_PROBLEMS.to_owned();
        }
        versions.push(HistoryVersion { version, fate });
    }
    let current = api.live.stored().await?.current;
    Ok(Json(json!({ "versions": versions, "current": current })))
}

/// Returns the text of a version.
pub(crate) async fn version(
    State(api): State<Api>,
    form: DocumentForm,
    Path(number): Path<u64>,
) -> Result<Response> {
    let version = api.version(number).await?;
    text(&api, form, version).await
}

/// Lists the differences between two versions, by path.
pub(crate) async fn diff(
    State(api): State<Api>,
    CheckPlace(place): CheckPlace,
    ReadsKeys(reads_keys): ReadsKeys,
    Query(DiffQuery { from, to }): Query<DiffQuery>,
) -> Result<Json<Value>> {
    let before = api.version(from).await?;
    let after = match to {
        Some(to) => api.version(to).await?,
        None => in_force(&api)?.version.clone(),
    };
    let to = after.number;
    let live = api.live.clone();
    let comparing = async move {
        live.differences(before, after, MOST_DIFFERENCES, reads_keys)
            .await
    };
    let compared = match place.hold(comparing).await? {
        Err(error) if !reads_keys => return Err(without_problems(error)),
        compared => compared?,
    };
    Ok(Json(json!({
        "from": from,
        "to": to,
        "differences": compared.differences,
        "more": compared.more,
        "lost_limits": compared.lost_limits,
    })))
}

/// Puts the text of an earlier version in force again, as a new version.
pub(crate) async fn rollback(
    State(api): State<Api>,
    change: Change,
    expected: Expected,
    ChangePlace(place): ChangePlace,
    Json(RollbackBody { version }): Json<RollbackBody>,
) -> Result<Response> {
    let (number, before) = (expected.number(&api).await?, api.live.in_force());
    let live = api.live.clone();
    let put = place.hold(async move { live.rollback(number, version, change.by()).await });
    put_version(&api, number, before, put.await?)
}
