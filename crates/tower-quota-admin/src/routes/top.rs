//! The clients that are limited most, and those that ask most.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use tower_quota::{TopClient, TopWindow};
#[cfg(feature = "redis")]
use tower_quota_rules::live::MergedClient;
use utoipa::{IntoParams, ToSchema};

use crate::api::{Api, ShowKeys, ShowQuery};
use crate::extract::{Json, Query};
use crate::problem::{Problem, Result};
use crate::status::millis;

/// The clients to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TopQuery {
    /// The requests to rank by: refused requests, or all of them.
    #[serde(default)]
    #[param(inline)]
    by: By,
    /// The time that is counted.
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

/// A client with many requests.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TopEntry {
    /// The limit: of a limited client that which refused it.
    limit: String,
    /// The scope of the key, such as `header x-api-key`.
    scope: String,
    /// The hash of the key, under which audit records and blocks name it.
    hash: String,
    /// The key, if keys are shown and it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// The number of its requests in the window, at least.
    at_least: u64,
    /// The number of its requests in the window, at most.
    at_most: u64,
    /// The time until its last refused request would be admitted, in milliseconds.
    retry_after_ms: u64,
}

/// Clients with many requests, those with most first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Top {
    clients: Vec<TopEntry>,
    /// The number of instances whose figures these are; absent if they are those of this instance alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    instances: Option<usize>,
    /// The age of the oldest of these figures in milliseconds; absent if this instance is alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    age_ms: Option<u64>,
}

/// Lists the clients that were refused most, or that asked most: of all instances that share them, or of this one.
#[utoipa::path(
    get, path = "/v1/top", operation_id = "top", params(TopQuery, ShowQuery),
    responses((status = 200, body = Top), (status = 403)),
)]
pub(crate) async fn top(
    State(api): State<Api>,
    ShowKeys(show): ShowKeys,
    Query(query): Query<TopQuery>,
) -> Result<Json<Top>> {
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
    #[cfg(feature = "redis")]
    if let Some(merged) = api
        .live
        .merged_top(matches!(query.by, By::Busy), window)
        .await?
    {
        let clients = merged
            .clients
            .into_iter()
            .take(most)
            .map(|client| merged_entry(client, show))
            .collect();
        return Ok(Json(Top {
            clients,
            instances: Some(merged.instances),
            age_ms: Some(millis(merged.age)),
        }));
    }
    let clients = match query.by {
        By::Limited => api.live.top_refused(window),
        By::Busy => api.live.top_busy(window),
    };
    let clients = clients
        .iter()
        .take(most)
        .map(|client| entry(&api, client, show))
        .collect();
    Ok(Json(Top {
        clients,
        instances: None,
        age_ms: None,
    }))
}

#[cfg(feature = "redis")]
fn merged_entry(client: MergedClient, show: bool) -> TopEntry {
    TopEntry {
        limit: client.limit,
        scope: client.scope,
        hash: client.hash,
        key: client.text.filter(|_| show),
        at_least: client.at_least,
        at_most: client.at_most,
        retry_after_ms: millis(client.retry_after),
    }
}

/// Returns a client as the API shows it.
pub(crate) fn entry(api: &Api, client: &TopClient, show: bool) -> TopEntry {
    TopEntry {
        limit: client.limit().to_string(),
        scope: client.key().scope().to_string(),
        hash: api.live.hash(client.key()),
        key: show.then(|| client.text()).flatten(),
        at_least: client.at_least(),
        at_most: client.at_most(),
        retry_after_ms: millis(client.retry_after()),
    }
}
