use axum::extract::State;
use serde::Serialize;
use tower_quota_live::AuditRecord;
use utoipa::ToSchema;

use super::history::MostQuery;
use crate::api::Api;
use crate::extract::{Json, Query};
use crate::problem::Result;

/// The latest changes, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Audit {
    records: Vec<AuditRecord>,
}

/// Lists the latest changes with author, time and values, and hashed keys.
#[utoipa::path(
    get, path = "/v1/audit", operation_id = "audit", params(MostQuery),
    responses((status = 200, body = Audit)),
)]
pub(crate) async fn audit(
    State(api): State<Api>,
    Query(query): Query<MostQuery>,
) -> Result<Json<Audit>> {
    Ok(Json(Audit {
        records: api.live.audit(query.or(100)?).await?,
    }))
}
