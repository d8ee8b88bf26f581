//! Single refusals, by the references that clients were given.

use axum::extract::State;
use serde::Serialize;
use tower_quota::RefusalRecord;
use tower_quota_rules::live::Time;
use tower_quota_rules::readable_key;
use utoipa::ToSchema;

use crate::api::{Api, ShowKeys, ShowQuery};
use crate::extract::{Json, Path};
use crate::problem::{Problem, Result};
use crate::status::Status;

/// A refusal as the instance that made it remembers it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Refusal {
    reference: String,
    /// The instance that refused the request.
    instance: String,
    /// The instant of the refusal.
    at: Time,
    /// The reason in one word: `refused` by a limit, `blocked`.
    reason: &'static str,
    /// The limit that refused, and what the client had left of it then. Absent if no limit was evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    /// The scope of the key by which this limit counted, such as `header x-api-key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// The hash of this key, under which lists, blocks and audit records name the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// The key, if keys are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// The version of the rules that decided, if they have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules_version: Option<u64>,
    /// True if the store was unavailable.
    degraded: bool,
}

/// Returns the refusal that a reference names, for an hour, if this instance made it.
///
/// Responses have references where the layer adds them: in `X-RateLimit-Reference` and in problem details.
#[utoipa::path(
    get, path = "/v1/refusals/{reference}", operation_id = "refusal",
    params(("reference" = String, Path, description = "The reference in the response to the client."), ShowQuery),
    responses((status = 200, body = Refusal), (status = 403), (status = 404)),
)]
pub(crate) async fn get(
    State(api): State<Api>,
    Path(reference): Path<String>,
    ShowKeys(show): ShowKeys,
) -> Result<Json<Refusal>> {
    let record = api
        .live
        .refusal(&reference)
        .ok_or_else(|| unknown(&reference))?;
    let millis = i64::try_from(record.age().as_millis()).unwrap_or(i64::MAX);
    let key = record.key();
    Ok(Json(Refusal {
        reference: record.reference().to_owned(),
        instance: record.instance().to_owned(),
        at: Time::from_unix_millis(Time::now().unix_millis().saturating_sub(millis)),
        reason: record.label(),
        status: record.status().copied().map(Status::from),
        scope: key.map(|key| key.scope().to_string()),
        hash: key.map(|key| api.live.hash(key)),
        key: key.filter(|_| show).map(readable_key),
        rules_version: record.policy_version(),
        degraded: record.is_degraded(),
    }))
}

fn unknown(reference: &str) -> Problem {
    let instance = RefusalRecord::instance_of(reference).unwrap_or("that its beginning names");
    Problem::not_found(format_args!(
        "this instance remembers no such refusal: ask the instance {instance}, within an hour of the refusal"
    ))
}
