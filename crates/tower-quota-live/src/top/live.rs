#[cfg(feature = "redis")]
use std::sync::Arc;

use tower_quota::{Key, TopWindow};

use super::list::{ListedClient, TopList};
use crate::LiveRules;
use crate::follow::FollowedRules;
#[cfg(feature = "redis")]
use crate::wait::{jittered, pause};

impl FollowedRules {
    #[cfg(feature = "redis")]
    pub(crate) async fn share_top(self: Arc<Self>) {
        let Some(top) = self.options.shared_top.clone() else {
            return;
        };
        let (mut closing, mut is_failing) = (self.closing.subscribe(), false);
        loop {
            tokio::select! {
                _ = closing.wait_for(|is_closing| *is_closing) => return,
                () = pause(jittered(top.every)) => {}
            }
            let published = top
                .publish(self.options.readable_keys, |is_busy, window| {
                    self.top_clients(is_busy, window)
                })
                .await;
            if let (Err(error), false) = (&published, is_failing) {
                tracing::warn!(%error, "the top clients of this instance are not published");
            }
            is_failing = published.is_err();
        }
    }

    /// Adds since when this instance has refused the clients of all instances.
    #[cfg(feature = "redis")]
    fn add_since(&self, sums: &mut TopList, is_busy: bool, window: TopWindow) {
        let own = self.top_clients(is_busy, window);
        for client in &mut sums.clients {
            let mut same = own.iter().filter(|own| {
                (&own.limit, &own.scope, &own.hash) == (&client.limit, &client.scope, &client.hash)
            });
            client.since = same.next().and_then(|own| own.since);
        }
    }

    fn top_clients(&self, is_busy: bool, window: TopWindow) -> Vec<ListedClient> {
        let clients = if is_busy {
            self.handle.top_busy(window)
        } else {
            self.handle.top_refused(window)
        };
        clients
            .iter()
            .map(|client| ListedClient::new(client, self.blocks.hash_text(&client.key)))
            .collect()
    }
}

impl LiveRules {
    /// Returns the most refused clients in a window, or the clients with most requests.
    ///
    /// With `LiveOptions::shared_top`, the numbers are sums of all instances, at most an interval
    /// old. If Redis does not answer within two seconds, you get the list of this instance. Busy
    /// clients need [`count_busy_clients`](tower_quota::RateLimitLayer::count_busy_clients) on your
    /// layer.
    pub async fn top(&self, is_busy: bool, window: TopWindow) -> TopList {
        let shared = self.shared();
        #[cfg(feature = "redis")]
        if let Some(top) = &shared.options.shared_top {
            match top.sums(is_busy, window).await {
                Ok(mut sums) => {
                    shared.add_since(&mut sums, is_busy, window);
                    return sums;
                }
                Err(error) => {
                    tracing::debug!(%error, "the top clients of other instances are not known")
                }
            }
        }
        TopList {
            clients: shared.top_clients(is_busy, window),
            instances: None,
        }
    }

    /// Returns the keys of the listed clients with their hashes, for a limit or for any limit.
    pub fn listed_keys(&self, limit: Option<&str>) -> impl Iterator<Item = (String, Key<'static>)> {
        let handle = self.handle();
        let lists = [TopWindow::Minute, TopWindow::TenMinutes, TopWindow::Hour]
            .into_iter()
            .flat_map(|window| [handle.top_refused(window), handle.top_busy(window)]);
        let clients = lists
            .flatten()
            .filter(move |client| limit.is_none_or(|limit| client.limit.as_str() == limit));
        clients.map(|client| (self.key_hash(&client.key), client.key.clone()))
    }
}
