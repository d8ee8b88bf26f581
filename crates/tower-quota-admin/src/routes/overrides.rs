//! Other quotas and credits of single clients, on all instances, until an end.

use core::fmt::Display;
use core::str::FromStr;

use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tower_quota::Quota;
use tower_quota_live::{Block, BlockTarget, Time};
use tower_quota_rules::{DurationText, QuotaText};
use utoipa::ToSchema;

use super::blocks::{LONGEST, hidden, shown};
use super::clients::HASH;
use super::history::MostQuery;
use crate::api::{Api, ShowKeys, ShowQuery};
use crate::change::{Change, ChangeParams};
use crate::extract::{Json, Query};
use crate::problem::{Problem, ProblemKind, Result};

/// Another quota of a client.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverrideBody {
    /// The name of a limit.
    limit: String,
    /// The key that the limit counts by, such as an API key; or `hash:` and the hash of a client.
    key: String,
    /// The quota, such as `60000/minute`.
    quota: String,
    /// The time until it ends, such as `2h`: at most a year. Give either this or `until`.
    r#for: Option<String>,
    /// The instant at which it ends.
    until: Option<Time>,
    /// The reason, which is listed with it.
    #[serde(default)]
    #[schema(max_length = 1000)]
    reason: String,
}

/// An override or a credit to end.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndBody {
    /// The id of an entry.
    id: String,
}

/// The overrides and credits in force.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OverrideList {
    overrides: Vec<Block>,
}

/// Lists the overrides and credits in force, on all instances. Of more than `limit` it lists those that began last.
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
    Ok(Json(OverrideList { overrides }))
}

/// Gives a client of a limit another quota, on all instances. An override of the same limit and client is replaced.
#[utoipa::path(
    put, path = "/v1/overrides", operation_id = "override", params(ChangeParams), request_body = OverrideBody,
    responses((status = 200, body = Block), (status = 404), (status = 422)),
)]
pub(crate) async fn put(
    State(api): State<Api>,
    change: Change,
    Json(body): Json<OverrideBody>,
) -> Result<Json<Block>> {
    let quota = Quota::from(read::<QuotaText>(&body.quota)?);
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
    Ok(Json(hidden(made.await?)))
}

/// Ends an override or a credit early.
#[utoipa::path(
    post, path = "/v1/overrides/remove", operation_id = "endOverride", params(ChangeParams), request_body = EndBody,
    responses((status = 204), (status = 404)),
)]
pub(crate) async fn remove(
    State(api): State<Api>,
    change: Change,
    Json(body): Json<EndBody>,
) -> Result<StatusCode> {
    let ended = api.live.unblock(&body.id, change.by()).await?;
    let missing = || Problem::not_found("there is no such override or credit: see /v1/overrides");
    ended.map(|_| StatusCode::NO_CONTENT).ok_or_else(missing)
}

/// Returns the end of an entry, if one is given.
pub(super) fn end(length: Option<&str>, until: Option<Time>) -> Result<Option<Time>> {
    let now = Time::now();
    let until = match (length, until) {
        (None, None) => return Ok(None),
        (None, Some(until)) => until,
        (Some(length), None) => now.after(read::<DurationText>(length)?.into()),
        (Some(_), Some(_)) => {
            return Err(invalid("there are two ends: leave out `for` or `until`"));
        }
    };
    if until <= now || until.since(now) > LONGEST {
        let detail =
            format_args!("{until} is no end: give one in the future, at most a year from now");
        return Err(invalid(detail));
    }
    Ok(Some(until))
}

fn read<T: FromStr<Err: Display>>(text: &str) -> Result<T> {
    text.parse().map_err(invalid)
}

fn invalid(detail: impl Display) -> Problem {
    Problem::new(ProblemKind::InvalidValue, detail)
}
