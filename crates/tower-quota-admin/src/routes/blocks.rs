use core::cmp::Reverse;
use core::net::IpAddr;
use core::time::Duration;

use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tower_quota::TopWindow;
use tower_quota::key::KeyExtractor;
use tower_quota_live::{Block, BlockTarget, ChangeError, NewBlock, RuleStoreError, Target};
use utoipa::ToSchema;

use super::clients::{HASH, listed};
use super::end::LONGEST;
use super::history::MostQuery;
use super::reach::{Reach, Reaching};
use crate::api::{Api, Caller, ShowKeys, ShowQuery};
use crate::change::{Change, ChangeHeaders};
use crate::extract::{Json, Query};
use crate::problem::{Problem, ProblemKind, Result};

/// A new block or allowance.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BlockBody {
    /// A network, an address, the key of a client, or `hash:` and the hash of a client.
    target: String,
    /// The scope of a key, such as `header x-api-key`. Required if several scopes accept the key.
    scope: Option<String>,
    /// Blocks even a very large network, or your own address.
    #[serde(default)]
    force: bool,
    /// `block` refuses with 403, `allow` admits without counting.
    #[serde(default)]
    kind: NewKind,
    /// The length in seconds, at most a year.
    #[schema(minimum = 1, maximum = 31622400)]
    seconds: u32,
    /// The reason, for the list of blocks.
    #[serde(default)]
    #[schema(max_length = 1000)]
    reason: String,
}

/// The effect of a block or an allowance.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum NewKind {
    #[default]
    Block,
    Allow,
}

/// The block or allowance to remove.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoveBody {
    /// The id of a block, or its target.
    target: String,
    /// The scope of a key.
    scope: Option<String>,
}

/// The blocks and allowances in force.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BlockList {
    blocks: Vec<Block>,
    /// Where these and new blocks hold.
    reach: Reach,
    /// The scopes of the keys of the limits in force.
    scopes: Vec<String>,
}

/// Lists the blocks and allowances in force, the latest `count` of them.
#[utoipa::path(
    get, path = "/v1/blocks", operation_id = "blocks", params(MostQuery, ShowQuery),
    responses((status = 200, body = BlockList), (status = 403)),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Query(query): Query<MostQuery>,
    ShowKeys(show): ShowKeys,
) -> Result<Json<BlockList>> {
    let blocks = shown(api.live.blocks(), query, show)?;
    let scopes = api.live.scopes();
    Ok(Json(BlockList {
        blocks,
        reach: Reach::of(&api),
        scopes,
    }))
}

pub(super) fn shown(mut blocks: Vec<Block>, query: MostQuery, show: bool) -> Result<Vec<Block>> {
    if let Some(most) = query.most()?
        && blocks.len() > most
    {
        blocks.sort_by_key(|block| Reverse(block.since));
        blocks.truncate(most);
    }
    let blocks = blocks.into_iter();
    Ok(blocks
        .map(|block| if show { block } else { hidden(block) })
        .collect())
}

/// Blocks or allows a client or a network on the instances of `reach`, and replaces an earlier
/// block.
///
/// If the store of the blocks does not answer, the block holds on this instance until the store
/// answers.
#[utoipa::path(
    put, path = "/v1/blocks", operation_id = "block", params(ChangeHeaders), request_body = BlockBody,
    responses((status = 200, body = Reaching), (status = 404), (status = 422)),
)]
pub(crate) async fn put(
    State(api): State<Api>,
    Caller(caller): Caller,
    change: Change,
    Json(body): Json<BlockBody>,
) -> Result<Json<Reaching>> {
    let length = length(body.seconds)?;
    let by = change.because(&body.reason)?;
    let target = resolve(&api, &body.target, body.scope.as_deref())?;
    if !body.force {
        let caller = caller.filter(|_| matches!(body.kind, NewKind::Block));
        check_reach(&target, caller)?;
    }
    let new = match body.kind {
        NewKind::Block => NewBlock::block(length, by),
        NewKind::Allow => NewBlock::allow(length, by),
    };
    let note = match body.kind {
        NewKind::Block => unseen(&api, &target),
        NewKind::Allow => None,
    };
    let target = BlockTarget::Resolved(&target);
    let (block, reach) = match api.live.block(target, new.clone()).await {
        Err(ChangeError::Store(RuleStoreError::Unavailable { .. })) => {
            let block = api.live.block_here(target, new).await?;
            (block, Reach::HereForNow)
        }
        block => (block?, Reach::of(&api)),
    };
    Ok(Json(Reaching {
        block: hidden(block),
        reach,
        note,
    }))
}

/// Says if none of the busy clients is in a blocked network, which is often the address of a client
/// behind a proxy that the rules do not trust.
fn unseen(api: &Api, target: &Target) -> Option<String> {
    let Target::Network(network) = target else {
        return None;
    };
    let busy = api.live.handle().top_busy(TopWindow::Hour);
    let mut addresses = busy.iter().filter_map(|client| client.key.to_address());
    let first = addresses.next()?;
    // Limits count networks of IPv6 addresses, which may be larger than the blocked one.
    let is_small = network.addr().is_ipv6() && network.prefix_len() > 32;
    if is_small || network.contains(&first) || addresses.any(|it| network.contains(&it)) {
        return None;
    }
    let client_ip = api.live.in_force()?.rules.client_ip();
    let source = match client_ip.scope().as_str().split_once(" of ") {
        Some((_, header)) => format!("the header {header} of your trusted proxies"),
        None => "the peer, because the rules have no `trusted_proxies`".to_owned(),
    };
    Some(format!(
        "no busy client of the last hour is in {network}: `client_ip` reads {source}"
    ))
}

/// Removes a block or an allowance by its id or its target.
#[utoipa::path(
    post, path = "/v1/blocks/remove", operation_id = "unblock", params(ChangeHeaders), request_body = RemoveBody,
    responses((status = 204), (status = 404), (status = 422)),
)]
pub(crate) async fn remove(
    State(api): State<Api>,
    change: Change,
    Json(body): Json<RemoveBody>,
) -> Result<StatusCode> {
    let id = body.target.strip_prefix(HASH).unwrap_or(&body.target);
    // An id with a space belongs to an override, which this route does not remove.
    let mut removed = match id.contains(' ') {
        true => None,
        false => unblock(&api, id, &change).await?,
    };
    if removed.is_none() && id == body.target {
        let id = resolve(&api, id, body.scope.as_deref())?.id();
        removed = unblock(&api, &id, &change).await?;
    }
    let missing = || Problem::not_found("there is no such block or allowance: see /v1/blocks");
    removed.map(|_| StatusCode::NO_CONTENT).ok_or_else(missing)
}

/// Removes a block, on this instance only while the store does not answer.
async fn unblock(api: &Api, id: &str, change: &Change) -> Result<Option<Block>> {
    match api.live.unblock(id, change.by()).await {
        Err(ChangeError::Store(RuleStoreError::Unavailable { .. })) => {
            Ok(api.live.unblock_here(id, change.by()).await?)
        }
        removed => Ok(removed?),
    }
}

fn resolve(api: &Api, text: &str, scope: Option<&str>) -> Result<Target> {
    let target = match (scope, text.strip_prefix(HASH)) {
        (Some(scope), Some(hash)) => BlockTarget::Hash { scope, hash },
        (Some(scope), None) => BlockTarget::Scoped { scope, text },
        (None, _) => match listed(api, text, None)? {
            Some(key) => return Ok(api.live.block_target(BlockTarget::Key(&key))?),
            None => BlockTarget::Text(text),
        },
    };
    Ok(api.live.block_target(target)?)
}

/// Refuses probable mistakes, very large networks and networks of the caller.
fn check_reach(target: &Target, caller: Option<IpAddr>) -> Result<()> {
    let Target::Network(network) = target else {
        return Ok(());
    };
    let shortest = if network.addr().is_ipv4() { 8 } else { 19 };
    let reason = if network.prefix_len() < shortest {
        format!("{network} is larger than a /{shortest}")
    } else if caller.is_some_and(|caller| network.contains(&caller)) {
        format!("{network} contains your own address")
    } else {
        return Ok(());
    };
    let detail = format_args!("{reason}: send `\"force\": true` if you mean it");
    Err(Problem::new(ProblemKind::InvalidValue, detail))
}

fn length(seconds: u32) -> Result<Duration> {
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

pub(super) fn hidden(mut block: Block) -> Block {
    if let Target::Key { text, .. } = &mut block.target {
        *text = None;
    }
    block
}
