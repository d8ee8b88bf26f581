use core::cmp::Reverse;
use core::time::Duration;
use std::collections::HashMap;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use tower_quota::key::KeyExtractor;
use tower_quota::{TopClient, TopWindow};
use tower_quota_live::{Block, BlockTarget, NewBlock, Target};

use super::block_mistakes::check_mistakes;
use super::clients::{HASH, listed};
use super::count::CountQuery;
use super::end::{LONGEST, invalid};
use super::reach::{Reach, Reaching, RemovedBlocks, hide};
use crate::api::{Api, Caller, ShowKeys};
use crate::change::Change;
use crate::extract::{Json, Query};
use crate::problem::{Problem, Result};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BlockBody {
    target: String,
    scope: Option<String>,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    kind: NewKind,
    seconds: u32,
    #[serde(default)]
    reason: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NewKind {
    #[default]
    Block,
    Allow,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoveBody {
    target: String,
    scope: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct BlockList {
    blocks: Vec<Block>,
    reach: Reach,
    scopes: Vec<String>,
}

/// Lists the blocks and allowances in force, the latest `count` of them.
pub(crate) async fn list(
    State(api): State<Api>,
    Query(query): Query<CountQuery>,
    ShowKeys(show): ShowKeys,
) -> Result<Json<BlockList>> {
    let mut blocks = shown(api.live.blocks(), query, show)?;
    if show {
        name_clients(&api, &mut blocks);
    }
    Ok(Json(BlockList {
        blocks,
        reach: Reach::of(&api, &[]),
        scopes: api.live.scopes(),
    }))
}

pub(super) fn shown(mut blocks: Vec<Block>, query: CountQuery, show: bool) -> Result<Vec<Block>> {
    let most = query.or(usize::MAX)?;
    if blocks.len() > most {
        blocks.sort_by_key(|block| Reverse(block.since));
        blocks.truncate(most);
    }
    if !show {
        blocks.iter_mut().for_each(hide);
    }
    Ok(blocks)
}

/// Blocks or allows a client or a network on the instances of `reach`, and replaces an earlier
/// block.
///
/// The block holds on this instance at once. If the store does not answer within a second, the other instances follow
/// when the store answers.
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
        let is_block = matches!(body.kind, NewKind::Block);
        check_mistakes(&api, &target, caller, is_block)?;
    }
    let (new, note) = match body.kind {
        NewKind::Block => (NewBlock::block(length, by), unseen(&api, &target)),
        NewKind::Allow => (NewBlock::allow(length, by), None),
    };
    let block = api.live.block(BlockTarget::Resolved(&target), new).await?;
    Ok(Json(Reaching::of(&api, block, note)))
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

/// Removes the blocks and allowances that an id or a target can mean, such as an address as a network and as a key.
///
/// The removal holds on this instance at once, and on the others as for a new block.
pub(crate) async fn remove(
    State(api): State<Api>,
    change: Change,
    Json(body): Json<RemoveBody>,
) -> Result<Json<RemovedBlocks>> {
    let mut removed = Vec::new();
    for id in meant(&api, &body.target, body.scope.as_deref()) {
        removed.extend(api.live.unblock(&id, change.by()).await?);
    }
    if removed.is_empty() {
        return Err(no_such_block(&api, &body.target));
    }
    Ok(Json(RemovedBlocks::of(&api, removed)))
}

/// Returns the ids of the blocks in force that a text can mean.
fn meant(api: &Api, text: &str, scope: Option<&str>) -> Vec<String> {
    let text = text.strip_prefix(HASH).unwrap_or(text);
    let mut ids = vec![text.to_owned()];
    if let Ok(target @ Target::Network(_)) = api.live.block_target(BlockTarget::Text(text)) {
        ids.push(target.id());
    }
    ids.extend(api.hashes(text));
    let has_scope = |target: &Target| match (scope, target) {
        (None, _) => true,
        (Some(scope), Target::Key { scope: of_key, .. }) => of_key == scope,
        (Some(_), Target::Network(_)) => false,
    };
    // The list has no overrides, which this route does not remove.
    let blocks = api.live.blocks().into_iter();
    let meant = blocks.filter(|block| ids.contains(&block.id) && has_scope(&block.target));
    meant.map(|block| block.id).collect()
}

fn no_such_block(api: &Api, text: &str) -> Problem {
    let clients = api.live.clients(text);
    let mut clients = clients.iter();
    match clients.find_map(|key| api.live.listing_of_client(key)) {
        Some(listing) => Problem::not_found(format_args!(
            "{} of {} decides about this client: change the document, or remove that block",
            listing.id, listing.target
        )),
        None => Problem::not_found("there is no such block or allowance"),
    }
}

/// Names the clients of blocks that this instance knows from its lists.
fn name_clients(api: &Api, blocks: &mut [Block]) {
    let known: HashMap<_, _> = api.live.listed_keys(None).collect();
    for block in blocks {
        if let Target::Key { hash, text, .. } = &mut block.target
            && text.is_none()
        {
            *text = known.get(hash).and_then(TopClient::text_of);
        }
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

fn length(seconds: u32) -> Result<Duration> {
    let length = Duration::from_secs(seconds.into());
    if length.is_zero() || length > LONGEST {
        let detail = format_args!(
            "a block lasts 1 to {} seconds, not {seconds}",
            LONGEST.as_secs()
        );
        return Err(invalid(detail));
    }
    Ok(length)
}
