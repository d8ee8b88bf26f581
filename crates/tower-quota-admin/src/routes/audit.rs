use axum::extract::State;
use serde_json::{Value, json};

use super::count::CountQuery;
use crate::api::Api;
use crate::extract::{Json, Query};
use crate::problem::Result;

/// Lists the latest changes with author, time and values, and hashed keys.
pub(crate) async fn audit(
    State(api): State<Api>,
    Query(query): Query<CountQuery>,
) -> Result<Json<Value>> {
    let records = api.live.audit(query.or(100)?).await?;
    Ok(Json(json!({ "records": records })))
}
