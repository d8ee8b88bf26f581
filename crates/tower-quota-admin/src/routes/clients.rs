//! Operates on single clients. Keys travel in bodies, to keep them out of access logs.

use core::num::NonZeroU64;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use tower_quota::Key;
use tower_quota_live::{Listing, RefusalFilter, Time};
use tower_quota_rules::QuotaText;

use crate::api::Api;
use crate::change::Change;
use crate::extract::Json;
use crate::problem::{Problem, Result};
use crate::status::Status;

pub(super) const HASH: &str = "hash:";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientBody {
    limit: String,
    key: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyBody {
    key: String,
}

#[derive(Serialize)]
pub(crate) struct FoundClients {
    clients: Vec<FoundClient>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<Listing>,
}

#[derive(Serialize)]
pub(crate) struct FoundClient {
    scope: String,
    hash: String,
    limits: Vec<&'static str>,
    #[serde(flatten)]
    reasons: Reasons,
}

#[derive(Serialize)]
pub(crate) struct Reasons {
    #[serde(skip_serializing_if = "Option::is_none")]
    listed: Option<Listing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_at: Option<Time>,
}

#[derive(Serialize)]
pub(crate) struct Peeked {
    #[serde(flatten)]
    status: Status,
    quota: String,
    source: String,
    #[serde(flatten)]
    reasons: Reasons,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrantBody {
    limit: String,
    key: String,
    units: NonZeroU64,
}

/// Finds the clients with a key, their hashes and limits, and charges no units.
pub(crate) async fn find(State(api): State<Api>, Json(body): Json<KeyBody>) -> Json<FoundClients> {
    let mut clients: Vec<FoundClient> = Vec::new();
    for limit in api.live.handle().limits() {
        let key = api.live.handle().key(limit.as_str(), &body.key);
        let Some(key) = key.ok().filter(|key| !key.as_bytes().is_empty()) else {
            continue;
        };
        let (scope, hash) = (key.scope().as_str(), api.live.key_hash(&key));
        let of_client = |client: &&mut FoundClient| client.scope == scope && client.hash == hash;
        match clients.iter_mut().find(of_client) {
            Some(client) => client.limits.push(limit.as_str()),
            None => clients.push(FoundClient {
                scope: scope.to_owned(),
                hash,
                limits: vec![limit.as_str()],
                reasons: Reasons::of(&api, &key),
            }),
        }
    }
    let address = body.key.trim().parse().ok();
    let network = address.and_then(|address| api.live.listing_of_address(address));
    Json(FoundClients { clients, network })
}

/// Returns the remaining units of a client with the reasons for its quota and for refusals, and charges no units.
pub(crate) async fn peek(
    State(api): State<Api>,
    Json(body): Json<ClientBody>,
) -> Result<Json<Peeked>> {
    let key = key(&api, &body.limit, &body.key)?;
    let handle = api.live.handle();
    let quota = QuotaText::from(handle.quota(&body.limit, &key)?);
    let mut status = Status::of(&api, handle.peek(&body.limit, &key).await?);
    let reasons = Reasons::of(&api, &key);
    if let Some(listed) = &reasons.listed {
        status.decide_by(listed);
    }
    Ok(Json(Peeked {
        status,
        quota: quota.to_string(),
        source: api.live.quota_source(&body.limit, &key).to_string(),
        reasons,
    }))
}

impl Reasons {
    fn of(api: &Api, key: &Key<'_>) -> Self {
        let filter = RefusalFilter {
            hashes: Some(vec![api.live.key_hash(key)]),
            ..RefusalFilter::default()
        };
        let refusals = api.live.refusals(&filter, 1).refusals;
        Self {
            listed: api.live.listing_of_client(key),
            refused_at: refusals.first().map(|refusal| refusal.at),
        }
    }
}

/// Deletes a client's counter of a limit, and its penalty. Returns the status afterwards.
pub(crate) async fn reset(
    State(api): State<Api>,
    change: Change,
    Json(body): Json<ClientBody>,
) -> Result<Json<Status>> {
    let key = key(&api, &body.limit, &body.key)?;
    let status = api.live.reset(&body.limit, &key, change.by()).await?;
    Ok(Json(Status::of(&api, status)))
}

#[derive(Serialize)]
pub(crate) struct Granted {
    given: u64,
    #[serde(flatten)]
    status: Status,
}

/// Gives used units back to a client, up to a full limit. For units above the quota, put an override.
/// Returns the units given back, and the status afterwards.
pub(crate) async fn grant(
    State(api): State<Api>,
    change: Change,
    Json(body): Json<GrantBody>,
) -> Result<Json<Granted>> {
    let key = key(&api, &body.limit, &body.key)?;
    let (units, by) = (body.units.get(), change.by());
    let status = api.live.grant(&body.limit, &key, units, by).await?;
    Ok(Json(Granted {
        given: status.taken,
        status: Status::of(&api, status),
    }))
}

/// Returns the client of a limit that a text names by its key, or by `hash:` and its hash.
fn key(api: &Api, limit: &str, text: &str) -> Result<Key<'static>> {
    match listed(api, text, Some(limit))? {
        Some(key) => Ok(key),
        None => Ok(api.live.handle().key(limit, text)?),
    }
}

pub(super) fn listed(api: &Api, text: &str, limit: Option<&str>) -> Result<Option<Key<'static>>> {
    let Some(hash) = text.strip_prefix(HASH) else {
        return Ok(None);
    };
    match api.live.listed_keys(limit).find(|(of, _)| of == hash) {
        Some((_, key)) => Ok(Some(key)),
        None => Err(Problem::not_found(
            "this instance lists no such client any more: name the client by its key",
        )),
    }
}
