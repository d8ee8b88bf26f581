//! Finds earlier refusals, to answer complaints.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use tower_quota_live::{RefusalFilter, RefusalList, Time};
use utoipa::ToSchema;

use super::clients::HASH;
use crate::api::{Api, ShowKeys, ShowQuery};
use crate::extract::Json;
use crate::problem::{Problem, ProblemKind, Result};

const MOST: usize = 1_000;
const DEFAULT: usize = 100;

/// The refusals to find. An absent field selects all values.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RefusalsBody {
    /// The key of a client, such as an address or an API key, or `hash:` and its hash.
    key: Option<String>,
    /// The scope of the key, such as `header x-api-key`.
    scope: Option<String>,
    /// The name of the refusing limit.
    limit: Option<String>,
    /// The earliest time.
    after: Option<Time>,
    /// The latest time.
    before: Option<Time>,
    /// The `x-request-id`, the trace id or the `traceparent` of a request.
    request: Option<String>,
    /// The most refusals to list. The default is 100.
    #[schema(minimum = 1, maximum = 1000)]
    count: Option<usize>,
}

/// The refusals that an instance remembers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoundRefusals {
    /// The instance. Other instances have lists of their own.
    instance: String,
    #[serde(flatten)]
    list: RefusalList,
}

/// Finds the last refusals of this instance, the newest first.
///
/// An instance remembers its last 10,000 refusals. If `since` is after the time of a complaint, the instance has
/// forgotten the refusal.
#[utoipa::path(
    post, path = "/v1/clients/refusals", operation_id = "refusals", params(ShowQuery), request_body = RefusalsBody,
    responses((status = 200, body = FoundRefusals), (status = 403), (status = 422)),
)]
pub(crate) async fn refusals(
    State(api): State<Api>,
    ShowKeys(show): ShowKeys,
    Json(body): Json<RefusalsBody>,
) -> Result<Json<FoundRefusals>> {
    let most = body.count.unwrap_or(DEFAULT);
    if !(1..=MOST).contains(&most) {
        return Err(Problem::invalid(format_args!(
            "count={most} is out of range: list 1 to {MOST} refusals"
        )));
    }
    let hashes = match body.key.as_deref() {
        Some(key) => Some(hashes(&api, key)?),
        None => None,
    };
    let filter = RefusalFilter {
        hashes,
        scope: body.scope,
        limit: body.limit,
        after: body.after,
        before: body.before,
        request: body.request,
    };
    let mut list = api.live.refusals(&filter, most);
    if !show {
        for refusal in &mut list.refusals {
            refusal.key = None;
        }
    }
    Ok(Json(FoundRefusals {
        instance: api.instance.clone(),
        list,
    }))
}

/// Returns the hashes of all clients that a text can name.
fn hashes(api: &Api, text: &str) -> Result<Vec<String>> {
    if let Some(hash) = text.strip_prefix(HASH) {
        return Ok(vec![hash.to_owned()]);
    }
    let clients = api.live.clients(text);
    if clients.is_empty() {
        let detail = format_args!(
            "no limit counts by a key that can be written so: they count by {}",
            api.live.scopes().join(", ")
        );
        return Err(Problem::new(ProblemKind::InvalidValue, detail));
    }
    Ok(clients.iter().map(|key| api.live.key_hash(key)).collect())
}
