//! Changes of clients that `/v1/top` lists, by the hash under which it lists them: the caller need not know the key.

use axum::extract::State;
use serde::Deserialize;
use tower_quota::{ClientKey, Key, TopWindow};
use tower_quota_rules::live::{Block, BlockTarget, NewBlock};
use utoipa::ToSchema;

use super::blocks::{hidden, length};
use super::clients::GrantBody;
use crate::api::Api;
use crate::change::{Change, ChangeParams};
use crate::extract::{Json, Path};
use crate::problem::{Problem, Result};
use crate::status::Status;

/// The length of a block.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListedBlockBody {
    /// The time until it ends, in seconds: at most a year.
    #[schema(minimum = 1, maximum = 31622400)]
    seconds: u32,
}

/// Blocks a listed client, on all instances. The comment is the reason.
#[utoipa::path(
    put, path = "/v1/top/{hash}/block", operation_id = "block_listed", request_body = ListedBlockBody,
    params(("hash" = String, Path, description = "The hash of the client, as /v1/top lists it."), ChangeParams),
    responses((status = 200, body = Block), (status = 404), (status = 422)),
)]
pub(crate) async fn block(
    State(api): State<Api>,
    Path(hash): Path<String>,
    change: Change,
    Json(body): Json<ListedBlockBody>,
) -> Result<Json<Block>> {
    let key = find(&api, &hash, None)?;
    let new = NewBlock::block(length(body.seconds)?, change.author).reason(change.comment);
    Ok(Json(hidden(
        api.live.block(BlockTarget::Key(&key), new).await?,
    )))
}

/// Deletes a listed client's counter of a limit, and its penalty. Returns what it has then.
#[utoipa::path(
    delete, path = "/v1/top/{hash}/limits/{limit}", operation_id = "reset_listed",
    params(
        ("hash" = String, Path, description = "The hash of the client, as /v1/top lists it."),
        ("limit" = String, Path, description = "The name of the limit, as /v1/top lists it."),
        ChangeParams,
    ),
    responses((status = 200, body = Status), (status = 404)),
)]
pub(crate) async fn reset(
    State(api): State<Api>,
    Path((hash, limit)): Path<(String, String)>,
    change: Change,
) -> Result<Json<Status>> {
    let key = find(&api, &hash, Some(&limit))?;
    Ok(Json(
        api.live
            .reset(&limit, ClientKey::Key(&key), change.by())
            .await?
            .into(),
    ))
}

/// Gives units back to a listed client, up to a full limit. Returns what it has then.
#[utoipa::path(
    post, path = "/v1/top/{hash}/limits/{limit}/grant", operation_id = "grant_listed", request_body = GrantBody,
    params(
        ("hash" = String, Path, description = "The hash of the client, as /v1/top lists it."),
        ("limit" = String, Path, description = "The name of the limit, as /v1/top lists it."),
        ChangeParams,
    ),
    responses((status = 200, body = Status), (status = 404), (status = 422)),
)]
pub(crate) async fn grant(
    State(api): State<Api>,
    Path((hash, limit)): Path<(String, String)>,
    change: Change,
    Json(body): Json<GrantBody>,
) -> Result<Json<Status>> {
    let key = find(&api, &hash, Some(&limit))?;
    Ok(Json(
        api.live
            .grant(&limit, ClientKey::Key(&key), body.units.get(), change.by())
            .await?
            .into(),
    ))
}

/// Returns the key of a client that this instance lists.
fn find(api: &Api, hash: &str, limit: Option<&str>) -> Result<Key<'static>> {
    let lists = [TopWindow::Minute, TopWindow::TenMinutes, TopWindow::Hour]
        .into_iter()
        .flat_map(|window| [api.live.top_refused(window), api.live.top_busy(window)]);
    lists
        .flatten()
        .find(|client| {
            limit.is_none_or(|limit| client.limit().as_str() == limit)
                && api.live.hash(client.key()) == hash
        })
        .map(|client| client.key().clone())
        .ok_or_else(|| {
            Problem::not_found("this instance lists no such client any more: name it by its key")
        })
}
