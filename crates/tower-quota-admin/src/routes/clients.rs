//! Operates on single clients. Keys travel in bodies, to keep them out of access logs.

use core::num::NonZeroU64;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use tower_quota::{ClientKey, Key};
use tower_quota_live::Time;
use utoipa::ToSchema;

use super::end::end;
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
}

/// A grant of units.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrantBody {
    /// The name of a limit.
    limit: String,
    /// The key of a client, such as an API key, or `hash:` and the hash of a client listed by this
    /// instance.
    key: String,
    /// The number of units. Without an end, units beyond the used ones have no effect.
    #[schema(value_type = u64, minimum = 1)]
    units: NonZeroU64,
    /// The time of a credit above the quota, such as `1d`, at most a year. You may give `for` or
    /// `until`.
    r#for: Option<String>,
    /// The end of a credit above the quota.
    until: Option<Time>,
    /// The reason, for your list of credits.
    #[serde(default)]
    #[schema(max_length = 1000)]
    reason: String,
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
            }),
        }
    }
    Json(FoundClients { clients })
}

/// Returns the remaining units of a client and the reset time, and charges no units.
#[utoipa::path(
    post, path = "/v1/clients/peek", operation_id = "peek", request_body = ClientBody,
    responses((status = 200, body = Status), (status = 404), (status = 422)),
)]
pub(crate) async fn peek(
    State(api): State<Api>,
    Json(body): Json<ClientBody>,
) -> Result<Json<Status>> {
    let listed = listed(&api, &body.key, Some(&body.limit))?;
    let client = client(&body.key, listed.as_ref());
    Ok(Json(
        api.live.handle().peek(&body.limit, client).await?.into(),
    ))
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

/// The granted units, and the status afterwards.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Granted {
    /// The units given. Without an end, units beyond the used ones have no effect.
    given: u64,
    /// The end of a credit.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Time>,
    #[serde(flatten)]
    status: Status,
}

/// Gives units back to a client, up to a full limit. With `for` or `until`, you give units above
/// the quota, and a bucket takes two seconds. Returns the units given, and the status afterwards.
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
    let (limit, units, live) = (&body.limit, body.units.get(), &api.live);
    let by = change.because(&body.reason)?;
    let (given, until, status) = match end(body.r#for.as_deref(), body.until)? {
        None => {
            let status = live.grant(limit, client, units, by).await?;
            (status.taken, None, status)
        }
        Some(until) => {
            let (credit, status) = live.credit(limit, client, units, until, by).await?;
            (units, Some(credit.until), status)
        }
    };
    Ok(Json(Granted {
        given,
        until,
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
