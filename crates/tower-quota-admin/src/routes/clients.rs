//! Single clients: what is left, reset, grant.

use core::num::NonZeroU64;

use axum::extract::State;
use serde::Deserialize;
use tower_quota::ClientKey;
use utoipa::ToSchema;

use crate::api::Api;
use crate::change::{Change, ChangeParams};
use crate::extract::{Json, Path};
use crate::problem::Result;
use crate::status::Status;

/// Units to give back to a client.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrantBody {
    /// The number of units. More than are used have no effect.
    #[schema(value_type = u64, minimum = 1)]
    pub(super) units: NonZeroU64,
}

/// Returns what a client has left of a limit, and until when. Charges nothing.
#[utoipa::path(
    get, path = "/v1/clients/{limit}/{key}", operation_id = "peek",
    params(
        ("limit" = String, Path, description = "The name of a limit."),
        ("key" = String, Path, description = "What the limit counts by: an address, an API key."),
    ),
    responses((status = 200, body = Status), (status = 404), (status = 422)),
)]
pub(crate) async fn peek(
    State(api): State<Api>,
    Path((limit, key)): Path<(String, String)>,
) -> Result<Json<Status>> {
    Ok(Json(
        api.live.peek(&limit, ClientKey::Text(&key)).await?.into(),
    ))
}

/// Deletes a client's counter of a limit, and its penalty. Returns what it has then.
#[utoipa::path(
    delete, path = "/v1/clients/{limit}/{key}", operation_id = "reset",
    params(
        ("limit" = String, Path, description = "The name of a limit."),
        ("key" = String, Path, description = "What the limit counts by: an address, an API key."),
        ChangeParams,
    ),
    responses((status = 200, body = Status), (status = 404), (status = 422)),
)]
pub(crate) async fn reset(
    State(api): State<Api>,
    Path((limit, key)): Path<(String, String)>,
    change: Change,
) -> Result<Json<Status>> {
    Ok(Json(
        api.live
            .reset(&limit, ClientKey::Text(&key), change.by())
            .await?
            .into(),
    ))
}

/// Gives units back to a client, up to a full limit. Returns what it has then.
#[utoipa::path(
    post, path = "/v1/clients/{limit}/{key}/grant", operation_id = "grant",
    params(
        ("limit" = String, Path, description = "The name of a limit."),
        ("key" = String, Path, description = "What the limit counts by: an address, an API key."),
        ChangeParams,
    ),
    request_body = GrantBody,
    responses((status = 200, body = Status), (status = 404), (status = 422)),
)]
pub(crate) async fn grant(
    State(api): State<Api>,
    Path((limit, key)): Path<(String, String)>,
    change: Change,
    Json(body): Json<GrantBody>,
) -> Result<Json<Status>> {
    Ok(Json(
        api.live
            .grant(&limit, ClientKey::Text(&key), body.units.get(), change.by())
            .await?
            .into(),
    ))
}
