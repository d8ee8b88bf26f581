use std::collections::HashMap;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use tower_quota::{Key, TopClient, TopWindow};
use tower_quota_live::ListedClient;
use utoipa::{IntoParams, ToSchema};

use crate::api::{Api, ShowKeys, ShowQuery};
use crate::extract::{Json, Query};
use crate::problem::{Problem, Result};
use crate::status::Status;

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
    /// The name of a limit: lists its clients only, each with its status.
    limit: Option<String>,
    /// The start of readable keys, such as `sk_free_`. It needs `show_keys`.
    prefix: Option<String>,
    /// The most clients to list.
    #[param(minimum = 1, maximum = 256, default = 20)]
    count: Option<usize>,
}

/// The clients with most requests, those with most requests first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TopClients {
    clients: Vec<Counter>,
    /// The number of instances in the sums; absent if the list is the list of this instance alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    instances: Option<u64>,
}

/// A client, and its counter if the list is of one limit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Counter {
    #[serde(flatten)]
    client: ListedClient,
    /// The status in the store now. Absent if the list is of all limits, or if this instance does not know the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
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
///
/// With `limit`, you get the counters of this limit. The list has only clients that the instances noticed
/// in the window, because a store cannot list its counters at a bounded cost.
#[utoipa::path(
    get, path = "/v1/top", operation_id = "top", params(TopQuery, ShowQuery),
    responses((status = 200, body = TopClients), (status = 403), (status = 404)),
)]
pub(crate) async fn top(
    State(api): State<Api>,
    ShowKeys(show): ShowKeys,
    Query(query): Query<TopQuery>,
) -> Result<Json<TopClients>> {
    let most = query.count.unwrap_or(20);
    if !(1..=TopClient::MOST).contains(&most) {
        return Err(Problem::invalid(format_args!(
            "count={most} is out of range: list 1 to {} clients",
            TopClient::MOST
        )));
    }
    let (limit, prefix) = (query.limit.as_deref(), query.prefix.as_deref());
    if prefix.is_some() && !show {
        return Err(Problem::invalid(
            "prefix finds readable keys only: add show_keys=true",
        ));
    }
    let handle = api.live.handle();
    if let Some(limit) = limit {
        handle.limiter(limit)?;
    }
    let window = match query.window {
        Window::Minute => TopWindow::Minute,
        Window::TenMinutes => TopWindow::TenMinutes,
        Window::Hour => TopWindow::Hour,
    };
    let mut top = api.live.top(matches!(query.by, By::Busy), window).await;
    top.clients.retain(|client| {
        let key = client.key.as_deref().unwrap_or_default();
        limit.is_none_or(|limit| client.limit == limit)
            && prefix.is_none_or(|prefix| key.starts_with(prefix))
    });
    top.clients.truncate(most);
    let keys = limit.map(|_| api.live.listed_keys(limit).collect());
    let keys: HashMap<_, _> = keys.unwrap_or_default();
    let mut clients = Vec::with_capacity(top.clients.len());
    for mut client in top.clients {
        let status = match limit {
            Some(limit) => status(&api, limit, &client, &keys).await?,
            None => None,
        };
        if !show {
            client.key = None;
        }
        clients.push(Counter { client, status });
    }
    Ok(Json(TopClients {
        clients,
        instances: top.instances,
    }))
}

async fn status(
    api: &Api,
    limit: &str,
    client: &ListedClient,
    keys: &HashMap<String, Key<'static>>,
) -> Result<Option<Status>> {
    let handle = api.live.handle();
    // Check the hash, because another instance may have other rules, by which the text is another
    // key or no key.
    let is_of_client = |key: &Key<'_>| api.live.key_hash(key) == client.hash;
    let by_text = || handle.key(limit, client.key.as_deref()?).ok();
    let key = keys.get(&client.hash).cloned().or_else(by_text);
    Ok(match key.filter(is_of_client) {
        Some(key) => Some(handle.peek(limit, &key).await?.into()),
        None => None,
    })
}
