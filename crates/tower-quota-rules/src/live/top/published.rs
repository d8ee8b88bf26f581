//! The figures that an instance tells the others.

use serde::{Deserialize, Serialize};
use tower_quota::{Key, TopClient, TopWindow};

/// The clients of each list that an instance publishes: six lists of them take at most some 50 kB.
pub(super) const PUBLISHED: usize = 64;

/// The longest readable key that is published, in bytes. Clients choose their keys.
const LONGEST_TEXT: usize = 128;

/// The figures of an instance: a list for each window.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Published {
    pub(super) limited: [List; 3],
    pub(super) busy: [List; 3],
}

/// The clients with most requests in a window.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct List {
    /// The most requests of a client that is not listed.
    pub(super) missing: u64,
    pub(super) clients: Vec<ListedClient>,
}

/// A client by the hash of its key, with its requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ListedClient {
    pub(super) limit: String,
    pub(super) scope: String,
    pub(super) hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    /// The upper bound of its requests.
    pub(super) most: u64,
    /// The part of the upper bound that may belong to other clients.
    pub(super) excess: u64,
    /// The milliseconds until its last refused request would be admitted.
    pub(super) retry: u64,
}

impl Published {
    /// Makes the figures of an instance: `top` returns the clients of a window, refused ones or all.
    pub(super) fn new(
        top: impl Fn(bool, TopWindow) -> Vec<TopClient>,
        listed: impl Fn(&TopClient) -> ListedClient,
    ) -> Self {
        let lists = |is_busy| {
            [TopWindow::Minute, TopWindow::TenMinutes, TopWindow::Hour]
                .map(|window| List::new(top(is_busy, window), &listed))
        };
        Self {
            limited: lists(false),
            busy: lists(true),
        }
    }

    pub(super) fn list(&self, is_busy: bool, window: TopWindow) -> &List {
        let [minute, ten, hour] = if is_busy { &self.busy } else { &self.limited };
        match window {
            TopWindow::Minute => minute,
            TopWindow::TenMinutes => ten,
            _ => hour,
        }
    }
}

impl List {
    fn new(mut clients: Vec<TopClient>, listed: impl Fn(&TopClient) -> ListedClient) -> Self {
        clients.sort_by_key(|client| core::cmp::Reverse(client.at_most()));
        // A sketch that lacks a client is full, and has no client with fewer requests than those it lacks.
        let missing = clients.get(PUBLISHED).map_or(0, TopClient::at_most);
        Self {
            missing,
            clients: clients.iter().take(PUBLISHED).map(listed).collect(),
        }
    }
}

impl ListedClient {
    pub(super) fn new(
        client: &TopClient,
        hash: impl Fn(&Key<'_>) -> u64,
        is_readable: bool,
    ) -> Self {
        let text = if is_readable { client.text() } else { None };
        Self {
            limit: client.limit().as_str().to_owned(),
            scope: client.key().scope().as_str().to_owned(),
            hash: format!("{:016x}", hash(client.key())),
            text: text.filter(|text| text.len() <= LONGEST_TEXT),
            most: client.at_most(),
            excess: client.at_most() - client.at_least(),
            retry: u64::try_from(client.retry_after().as_millis()).unwrap_or(u64::MAX),
        }
    }
}
