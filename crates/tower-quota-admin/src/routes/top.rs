use std::collections::HashMap;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use tower_quota::{HandleError, Key, TopClient, TopWindow};
use tower_quota_live::ListedClient;

use super::count::count;
use crate::api::{Api, ShowKeys};
use crate::extract::{Json, Query};
use crate::problem::{Problem, Result};
use crate::status::Status;

#[derive(Deserialize)]
pub(crate) struct TopQuery {
    #[serde(default)]
    by: By,
    #[serde(default)]
    window: Window,
    limit: Option<String>,
    prefix: Option<String>,
    count: Option<usize>,
}

#[derive(Serialize)]
pub(crate) struct TopClients {
    clients: Vec<Counter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instances: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct Counter {
    #[serde(flatten)]
    client: ListedClient,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum By {
    #[default]
    Limited,
    Busy,
}

#[derive(Clone, Copy, Default, Deserialize)]
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
pub(crate) async fn top(
    State(api): State<Api>,
    ShowKeys(show): ShowKeys,
    Query(query): Query<TopQuery>,
) -> Result<Json<TopClients>> {
    let most = count(query.count, 20, TopClient::MOST)?;
    let (limit, prefix) = (query.limit.as_deref(), query.prefix.as_deref());
    if prefix.is_some() && !show {
        return Err(Problem::invalid(
            "prefix finds readable keys only: add show_keys=true",
        ));
    }
    let handle = api.live.handle();
    if let Some(limit) = limit
        && let Err(error @ HandleError::UnknownLimit { .. }) = handle.limiter(limit)
    {
        return Err(error.into());
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
    let mut clients = Vec::with_capacity(top.clients.len());
    for client in top.clients {
        let status = None;
        clients.push(Counter { client, status });
    }
    if let Some(limit) = limit {
        let keys = api.live.listed_keys(Some(limit)).collect();
        for counter in &mut clients {
            counter.status = status(&api, limit, &counter.client, &keys).await?;
        }
    }
    if !show {
        for counter in &mut clients {
            counter.client.key = None;
        }
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
        Some(key) => Some(Status::of(api, handle.peek(limit, &key).await?)),
        None => None,
    })
}
