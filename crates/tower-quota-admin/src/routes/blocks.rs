//! Blocks and allowances of clients and networks, on all instances.

use core::cmp::Reverse;
use core::time::Duration;

use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tower_quota_rules::live::{Block, BlockKind, BlockTarget, NewBlock, Target};
use utoipa::ToSchema;

use super::history::MostQuery;
use crate::api::{Api, ShowKeys, ShowQuery};
use crate::change::{Change, ChangeParams, check_comment};
use crate::extract::{Json, Path, Query};
use crate::problem::{Problem, ProblemKind, Result};

/// The longest block.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// A block or an allowance to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BlockBody {
    /// A network or an address such as `203.0.113.0/24`, or else what a limit counts by: an API key.
    target: String,
    /// The scope of a key, such as `header x-api-key`, where limits count by several.
    scope: Option<String>,
    /// `block` refuses with 403; `allow` lets pass uncounted.
    #[serde(default)]
    kind: BlockKind,
    /// The time until it ends, in seconds: at most a year.
    #[schema(minimum = 1, maximum = 31622400)]
    seconds: u32,
    /// The reason, which is listed with it.
    #[serde(default)]
    #[schema(max_length = 1000)]
    reason: String,
}

/// The blocks and allowances in force.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BlockList {
    blocks: Vec<Block>,
}

/// Lists the blocks and allowances in force, on all instances. Of more than `limit` it lists those that began last.
#[utoipa::path(
    get, path = "/v1/blocks", operation_id = "blocks", params(MostQuery, ShowQuery),
    responses((status = 200, body = BlockList), (status = 403)),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Query(query): Query<MostQuery>,
    ShowKeys(show): ShowKeys,
) -> Result<Json<BlockList>> {
    let mut blocks = api.live.blocks();
    if let Some(most) = query.most()?
        && blocks.len() > most
    {
        blocks.sort_by_key(|block| Reverse(block.since));
        blocks.truncate(most);
    }
    let blocks = blocks
        .into_iter()
        .map(|block| if show { block } else { hidden(block) })
        .collect();
    Ok(Json(BlockList { blocks }))
}

/// Blocks or allows a client or a network, on all instances. An entry of the same target is replaced.
#[utoipa::path(
    put, path = "/v1/blocks", operation_id = "block", params(ChangeParams), request_body = BlockBody,
    responses((status = 200, body = Block), (status = 404), (status = 422)),
)]
pub(crate) async fn put(
    State(api): State<Api>,
    change: Change,
    Json(body): Json<BlockBody>,
) -> Result<Json<Block>> {
    let length = length(body.seconds)?;
    check_comment(&body.reason)?;
    let target = match &body.scope {
        Some(scope) => BlockTarget::Scoped {
            scope,
            text: &body.target,
        },
        None => BlockTarget::Text(&body.target),
    };
    let new = match body.kind {
        BlockKind::Block => NewBlock::block(length, change.author),
        BlockKind::Allow => NewBlock::allow(length, change.author),
    };
    // A reason is a comment that is listed with the block.
    let reason = if body.reason.is_empty() {
        change.comment
    } else {
        body.reason
    };
    Ok(Json(hidden(
        api.live.block(target, new.reason(reason)).await?,
    )))
}

/// Removes a block or an allowance by its id or its target.
#[utoipa::path(
    delete, path = "/v1/blocks/{id}", operation_id = "unblock",
    params(("id" = String, Path, description = "The id of an entry or its target, with `/` written as %2F."), ChangeParams),
    responses((status = 204), (status = 404)),
)]
pub(crate) async fn remove(
    State(api): State<Api>,
    Path(id): Path<String>,
    change: Change,
) -> Result<StatusCode> {
    let mut removed = api.live.unblock(&id, change.by()).await?;
    if removed.is_none()
        && let Some(id) = api.live.block_id(BlockTarget::Text(&id))
    {
        removed = api.live.unblock(&id, change.by()).await?;
    }
    let missing = || Problem::not_found("there is no such block or allowance: see /v1/blocks");
    removed.map(|_| StatusCode::NO_CONTENT).ok_or_else(missing)
}

/// Returns the length of a block, if it is in range.
pub(crate) fn length(seconds: u32) -> Result<Duration> {
    let length = Duration::from_secs(seconds.into());
    if length.is_zero() || length > LONGEST {
        let detail = format_args!(
            "a block lasts 1 to {} seconds, not {seconds}",
            LONGEST.as_secs()
        );
        return Err(Problem::new(ProblemKind::InvalidValue, detail));
    }
    Ok(length)
}

/// Leaves out the readable key.
pub(crate) fn hidden(mut block: Block) -> Block {
    if let Target::Key { text, .. } = &mut block.target {
        *text = None;
    }
    block
}
