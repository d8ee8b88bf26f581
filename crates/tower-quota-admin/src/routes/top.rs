use axum::extract::State;
use serde::Deserialize;
use tower_quota::{TopClient, TopWindow};
use tower_quota_live::TopList;
use utoipa::{IntoParams, ToSchema};

use crate::api::{Api, ShowKeys, ShowQuery};
use crate::extract::{Json, Query};
use crate::problem::{Problem, Result};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TopQuery {
    /// Ranks clients by refused requests, or by all requests.
    #[serde(default)]
    #[param(inline)]
    by: By,
    /// The period to count.
    #[serde(default)]
    #[param(inline)]
    window: Window,
    /// The most clients to list.
    #[param(minimum = 1, maximum = 256, default = 20)]
    limit: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TopBy)]
enum By {
    #[default]
    Limited,
    Busy,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[schema(as = TopWindow)]
enum Window {
    #[serde(rename = "1m")]
    Minute,
    #[default]
    #[serde(rename = "10m")]
    TenMinutes,
    #[serde(rename = "1h")]
    Hour,
}

/// Lists the clients with most refused requests, or with most requests, of all sharing instances or
/// of this instance.
#[utoipa::path(
    get, path = "/v1/top", operation_id = "top", params(TopQuery, ShowQuery),
    responses((status = 200, body = TopList), (status = 403)),
)]
pub(crate) async fn top(
    State(api): State<Api>,
    ShowKeys(show): ShowKeys,
    Query(query): Query<TopQuery>,
) -> Result<Json<TopList>> {
    let most = query.limit.unwrap_or(20);
    if !(1..=TopClient::MOST).contains(&most) {
        return Err(Problem::invalid(format_args!(
            "limit={most} is out of range: list 1 to {} clients",
            TopClient::MOST
        )));
    }
    let window = match query.window {
        Window::Minute => TopWindow::Minute,
        Window::TenMinutes => TopWindow::TenMinutes,
        Window::Hour => TopWindow::Hour,
    };
    let mut top = api.live.top(matches!(query.by, By::Busy), window).await;
    top.clients.truncate(most);
    if !show {
        for client in &mut top.clients {
            client.key = None;
        }
    }
    Ok(Json(top))
}
