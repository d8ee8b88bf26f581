use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tower_quota::{ConfigError, HandleError, Quota};
use tower_quota_live::{Block, BlockTarget, Time};
use tower_quota_rules::Grant;
use utoipa::ToSchema;

use super::blocks::{hidden, shown};
use super::clients::HASH;
use super::end::{end, invalid, read};
use super::history::MostQuery;
use super::reach::{Reach, Reaching};
use crate::api::{Api, ShowKeys, ShowQuery};
use crate::change::{Change, ChangeHeaders};
use crate::extract::{Json, Query};
use crate::problem::{Problem, Result};

const MOST_A_SECOND: u64 = 10_000_000;
const MOST_AT_ONCE: u64 = 10_000;

/// Another quota for a client.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverrideBody {
    /// The name of a limit.
    limit: String,
    /// The key of a client, such as an API key, or `hash:` and the hash of a client.
    key: String,
    /// The quota, such as `60000/minute`. `unlimited` means the largest quota, 10 million a second or 10,000 at once.
    quota: String,
    /// The time until the end, such as `2h`, at most a year. You give `for` or `until`.
    r#for: Option<String>,
    /// The end, such as `2026-05-01T12:00:00Z`.
    until: Option<Time>,
    /// The reason, for the list of overrides.
    #[serde(default)]
    #[schema(max_length = 1000)]
    reason: String,
}

/// The override to end.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndBody {
    /// The id from the list of overrides.
    id: String,
}

/// The overrides in force.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OverrideList {
    overrides: Vec<Block>,
    /// Where these and new overrides hold.
    reach: Reach,
}

/// Lists the overrides in force. With `count`, lists the latest.
#[utoipa::path(
    get, path = "/v1/overrides", operation_id = "overrides", params(MostQuery, ShowQuery),
    responses((status = 200, body = OverrideList), (status = 403), (status = 404)),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Query(query): Query<MostQuery>,
    ShowKeys(show): ShowKeys,
) -> Result<Json<OverrideList>> {
    let overrides = shown(api.live.overrides(), query, show)?;
    Ok(Json(OverrideList {
        overrides,
        reach: Reach::of(&api),
    }))
}

/// Gives a client another quota of a limit on the instances of `reach`, and replaces an earlier
/// override.
#[utoipa::path(
    put, path = "/v1/overrides", operation_id = "override", params(ChangeHeaders), request_body = OverrideBody,
    responses((status = 200, body = Reaching), (status = 404), (status = 422)),
)]
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
    let missing = || invalid("an override needs an end: give `for`, such as \"2h\", or `until`");
    let (until, by) = (until.ok_or_else(missing)?, change.because(&body.reason)?);
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
    Ok(Json(Reaching {
        block: hidden(made.await?),
        reach: Reach::of(&api),
        note: None,
    }))
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
#[utoipa::path(
    post, path = "/v1/overrides/remove", operation_id = "endOverride", params(ChangeHeaders), request_body = EndBody,
    responses((status = 204), (status = 404)),
)]
pub(crate) async fn remove(
    State(api): State<Api>,
    change: Change,
    Json(body): Json<EndBody>,
) -> Result<StatusCode> {
    // An id without a space belongs to a block, which this route does not end.
    let ended = match body.id.contains(' ') {
        true => api.live.unblock(&body.id, change.by()).await?,
        false => None,
    };
    let missing = || Problem::not_found("there is no such override: see /v1/overrides");
    ended.map(|_| StatusCode::NO_CONTENT).ok_or_else(missing)
}
