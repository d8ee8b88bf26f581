use serde::{Deserialize, Serialize};
use tower_quota::{Key, TopClient};

use crate::time::Time;
use crate::wait::now;

/// The clients with most requests, on a single instance or on all sharing instances.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TopList {
    /// The clients, ordered by requests, at most [`TopClient::MOST`].
    pub clients: Vec<ListedClient>,
    /// The number of instances in the sums, absent for the list of a single instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instances: Option<u64>,
}

/// A client with many requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListedClient {
    /// The limit, or the refusing limit of a refused client.
    pub limit: String,
    /// The clients of the counter. You can block only a single client.
    pub who: Counted,
    /// The scope of the key, such as `header x-api-key`.
    pub scope: String,
    /// The hash of the key, 16 hexadecimal digits, as in audit records and blocks.
    pub hash: String,
    /// The key, if it is text and may be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The lowest possible number of requests in the window.
    pub at_least: u64,
    /// The highest possible number of requests in the window, absent in sums of instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u64>,
    /// The retry time of the last refusal, in milliseconds, absent in sums of instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Since when the client has been at its limit, refused at least once a minute, on the instance that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

/// The clients of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// A single client.
    Client,
    /// All clients, by a limit without a key.
    Everyone,
    /// All clients without a key.
    WithoutKey,
}

impl ListedClient {
    pub(super) fn new(client: &TopClient, hash: String) -> Self {
        let key = &client.key;
        let who = if key.scope() == Key::EVERYONE.scope() {
            Counted::Everyone
        } else if key.as_bytes().is_empty() {
            Counted::WithoutKey
        } else {
            Counted::Client
        };
        let retry_after = client.retry_after().as_nanos().div_ceil(1_000_000);
        Self {
            limit: client.limit.as_str().to_owned(),
            who,
            scope: key.scope().as_str().to_owned(),
            hash,
            key: client.text(),
            at_least: client.at_least(),
            at_most: Some(client.at_most),
            retry_after_ms: u64::try_from(retry_after).ok(),
            since: client
                .since
                .map(|since| Time::now().before(now().saturating_duration_since(since))),
        }
    }
}
