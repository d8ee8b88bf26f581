//! Operates on single clients. Keys travel in bodies, to keep them out of access logs.

use core::num::NonZeroU64;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use tower_quota::{ClientKey, Key};
use tower_quota_live::{Listing, RefusalFilter, Time};
use tower_quota_rules::QuotaText;
use utoipa::ToSchema;

use crate::api::Api;
use crate::change::{Change, ChangeHeaders};
use crate::extract::Json;
use crate::problem::{Problem, Result};
use crate::status::Status;

pub(super) const HASH: &str = "hash:";

/// A client of a limit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientBody {
    /// The name of a limit.
    limit: String,
    /// The key of a client, such as an API key, or `hash:` and the hash of a client listed by this
    /// instance.
    key: String,
}

/// A key to find.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyBody {
    /// The key of a client, such as an address or an API key.
    key: String,
}

/// The clients with this key, by scope.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoundClients {
    clients: Vec<FoundClient>,
    /// The block or the allowance of a network, if the key is an address in the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<Listing>,
}

/// A client with this key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoundClient {
    /// The scope of the key, such as `header x-api-key`.
    scope: String,
    /// The hash of the key, as in lists, blocks and audit records.
    hash: String,
    /// The limits that count the client.
    limits: Vec<&'static str>,
    #[serde(flatten)]
    reasons: Reasons,
}

/// The reasons why a client was refused, or will be.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Reasons {
    /// The entry that blocks or allows the client before any limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    listed: Option<Listing>,
    /// The last refusal that this instance remembers.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_at: Option<Time>,
}

/// The status of a client of a limit, with its reasons.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Peeked {
    #[serde(flatten)]
    status: Status,
    /// The quota of the client.
    quota: String,
    /// What gives the quota: `limit`, `tier NAME`, `override` of the document, or `override by AUTHOR until TIME`.
    source: String,
    #[serde(flatten)]
    reasons: Reasons,
}

/// Used units to give back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrantBody {
    /// The name of a limit.
    limit: String,
    /// The key of a client, such as an API key, or `hash:` and the hash of a client listed by this
    /// instance.
    key: String,
    /// The number of units. Units beyond the used ones have no effect.
    #[schema(value_type = u64, minimum = 1)]
    units: NonZeroU64,
}

/// Finds the clients with a key, their hashes and limits, and charges no units.
#[utoipa::path(
    post, path = "/v1/clients/find", operation_id = "find", request_body = KeyBody,
    responses((status = 200, body = FoundClients), (status = 422)),
)]
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
#[utoipa::path(
    post, path = "/v1/clients/peek", operation_id = "peek", request_body = ClientBody,
    responses((status = 200, body = Peeked), (status = 404), (status = 422)),
)]
pub(crate) async fn peek(
    State(api): State<Api>,
    Json(body): Json<ClientBody>,
) -> Result<Json<Peeked>> {
    let listed = listed(&api, &body.key, Some(&body.limit))?;
    let client = client(&body.key, listed.as_ref());
    let handle = api.live.handle();
    let key = handle.key(&body.limit, client)?;
    let quota = QuotaText::from(handle.quota(&body.limit, &key)?);
    let mut status = Status::from(handle.peek(&body.limit, &key).await?);
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
#[utoipa::path(
    post, path = "/v1/clients/reset", operation_id = "reset", params(ChangeHeaders), request_body = ClientBody,
    responses((status = 200, body = Status), (status = 404), (status = 422)),
)]
pub(crate) async fn reset(
    State(api): State<Api>,
    change: Change,
    Json(body): Json<ClientBody>,
) -> Result<Json<Status>> {
    let listed = listed(&api, &body.key, Some(&body.limit))?;
    let client = client(&body.key, listed.as_ref());
    let status = api.live.reset(&body.limit, client, change.by()).await?;
    Ok(Json(status.into()))
}

/// The units given back, and the status afterwards.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Granted {
    /// The units given back, at most the used ones.
    given: u64,
    #[serde(flatten)]
    status: Status,
}

/// Gives used units back to a client, up to a full limit. For units above the quota, put an override.
/// Returns the units given back, and the status afterwards.
#[utoipa::path(
    post, path = "/v1/clients/grant", operation_id = "grant", params(ChangeHeaders), request_body = GrantBody,
    responses((status = 200, body = Granted), (status = 404), (status = 422)),
)]
pub(crate) async fn grant(
    State(api): State<Api>,
    change: Change,
    Json(body): Json<GrantBody>,
) -> Result<Json<Granted>> {
    let listed = listed(&api, &body.key, Some(&body.limit))?;
    let client = client(&body.key, listed.as_ref());
    let (units, by) = (body.units.get(), change.by());
    let status = api.live.grant(&body.limit, client, units, by).await?;
    Ok(Json(Granted {
        given: status.taken,
        status: status.into(),
    }))
}

fn client<'k>(text: &'k str, listed: Option<&'k Key<'static>>) -> ClientKey<'k> {
    listed.map_or(ClientKey::Text(text), ClientKey::Key)
}

pub(super) fn listed(api: &Api, text: &str, limit: Option<&str>) -> Result<Option<Key<'static>>> {
    let Some(hash) = text.strip_prefix(HASH) else {
        return Ok(None);
    };
    let missing = || {
        let detail = "this instance lists no such client any more: name the client by its key";
        Problem::not_found(detail)
    };
    let mut listed = api.live.listed_keys(limit);
    let found = listed.find(|(of, _)| of == hash).ok_or_else(missing)?;
    Ok(Some(found.1))
}
