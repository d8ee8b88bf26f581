//! The clients that are limited most, and those that ask most.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use tower_quota::{Key, TopClient, TopWindow};
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

/// The clients that a counter counts.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TopWho)]
enum Who {
    /// One client.
    Client,
    /// All clients, by a limit without a key.
    Everyone,
    /// All clients that send no key.
    WithoutKey,
}

impl Who {
    fn of(scope: &str, has_no_key: bool) -> Self {
        if scope == Key::EVERYONE.scope().as_str() {
            Self::Everyone
        } else if has_no_key {
            Self::WithoutKey
        } else {
            Self::Client
        }
    }
}

/// A client with many requests.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TopEntry {
    /// The limit: of a limited client that which refused it.
    limit: String,
    /// The clients that the counter counts. Only a single client can be blocked.
    who: Who,
    /// The scope of the key, such as `header x-api-key`.
    scope: String,
    /// The hash of the key, under which audit records and blocks name it.
    hash: String,
    /// The key, if keys are shown and it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// The number of its requests in the window, at least.
    at_least: u64,
    /// The number of its requests in the window, at most; absent in sums of instances.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<u64>,
    /// The time until its last refused request would be admitted, in milliseconds; absent in sums of instances.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

/// Clients with many requests, those with most first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Top {
    clients: Vec<TopEntry>,
    /// The number of instances whose figures these are; absent if they are those of this instance alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    instances: Option<u64>,
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
    }))
}

#[cfg(feature = "redis")]
fn merged_entry(client: MergedClient, show: bool) -> TopEntry {
    TopEntry {
        who: Who::of(&client.scope, client.has_no_key),
        limit: client.limit,
        scope: client.scope,
        hash: client.hash,
        key: client.text.filter(|_| show),
        at_least: client.at_least,
        at_most: None,
        retry_after_ms: None,
    }
}

/// Returns a client as the API shows it.
pub(crate) fn entry(api: &Api, client: &TopClient, show: bool) -> TopEntry {
    let key = client.key();
    TopEntry {
        limit: client.limit().to_string(),
        who: Who::of(key.scope().as_str(), key.as_bytes().is_empty()),
        scope: key.scope().to_string(),
        hash: api.live.hash(key),
        key: show.then(|| client.text()).flatten(),
        at_least: client.at_least(),
        at_most: Some(client.at_most()),
        retry_after_ms: Some(millis(client.retry_after())),
    }
}
