use axum::extract::State;
use serde::{Deserialize, Serialize};
use tower_quota::{ConfigError, HandleError, Quota};
use tower_quota_live::{Block, BlockTarget, Time};
use tower_quota_rules::Grant;

use super::blocks::shown;
use super::clients::HASH;
use super::count::CountQuery;
use super::end::{end, read};
use super::reach::{Reach, Reaching, RemovedBlocks};
use crate::api::{Api, ShowKeys};
use crate::change::Change;
use crate::extract::{Json, Query};
use crate::problem::{Problem, Result};

const MOST_A_SECOND: u64 = 10_000_000;
const MOST_AT_ONCE: u64 = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverrideBody {
    limit: String,
    key: String,
    quota: String,
    r#for: Option<String>,
    until: Option<Time>,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndBody {
    id: String,
}

#[derive(Serialize)]
pub(crate) struct OverrideList {
    overrides: Vec<Block>,
    reach: Reach,
}

/// Lists the overrides in force. With `count`, lists the latest.
pub(crate) async fn list(
    State(api): State<Api>,
    Query(query): Query<CountQuery>,
    ShowKeys(show): ShowKeys,
) -> Result<Json<OverrideList>> {
    Ok(Json(OverrideList {
        overrides: shown(api.live.overrides(), query, show)?,
        reach: Reach::of(&api, &[]),
    }))
}

/// Gives a client another quota of a limit on the instances of `reach`, and replaces an earlier
/// override.
pub(crate) async fn put(
    State(api): State<Api>,
    change: Change,
    Json(body): Json<OverrideBody>,
) -> Result<Json<Reaching>> {
    let quota = match read::<Grant>(&body.quota)?.quota() {
        Some(quota) => *quota,
        None => largest(&api, &body.limit),
    };
    let until = end(body.r#for.as_deref(), body.until)?;
    let by = change.because(&body.reason)?;
    let scope = api.live.handle().check_quota(&body.limit, quota)?;
    let live = &api.live;
    let client = match body.key.strip_prefix(HASH) {
        Some(hash) => live.block_target(BlockTarget::Hash {
            scope: scope.as_str(),
            hash,
        })?,
        None => live.client_target(&body.limit, &body.key)?,
    };
    let made = live.override_quota(&body.limit, &client, quota, until, by);
    Ok(Json(Reaching::of(&api, made.await?, None)))
}

/// Returns the largest quota that counts as the limit does.
fn largest(api: &Api, limit: &str) -> Quota {
    let rate = Quota::per_second(MOST_A_SECOND);
    match api.live.handle().check_quota(limit, rate) {
        Err(HandleError::InvalidQuota(_, ConfigError::OtherCounting { .. })) => {
            Quota::concurrent(MOST_AT_ONCE)
        }
        _ => rate,
    }
}

/// Ends an override early.
pub(crate) async fn remove(
    State(api): State<Api>,
    change: Change,
    Json(body): Json<EndBody>,
) -> Result<Json<RemovedBlocks>> {
    // An id without a space belongs to a block, which this route does not end.
    let ended = match body.id.contains(' ') {
        true => api.live.unblock(&body.id, change.by()).await?,
        false => None,
    };
    let ended = ended.ok_or_else(|| Problem::not_found("there is no such override"))?;
    Ok(Json(RemovedBlocks::of(&api, vec![ended])))
}
