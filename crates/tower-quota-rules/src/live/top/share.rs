//! Publishes the figures of live rules, and reads those of all instances.

use std::sync::Arc;

use tower_quota::{Store, TopWindow};

use super::merge::MergedTop;
use super::published::{ListedClient, Published};
use crate::live::LiveRules;
use crate::live::follow::Shared;
use crate::live::wait::{jittered, pause};

impl<S: Store + 'static> Shared<S> {
    /// Publishes the top clients of this instance until it is closed.
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
            let published = top.publish(&self.published()).await;
            if let (Err(error), false) = (&published, is_failing) {
                tracing::warn!(%error, "the top clients of this instance are not published");
            }
            is_failing = published.is_err();
        }
    }

    fn published(&self) -> Published {
        let top = |is_busy, window| {
            if is_busy {
                self.handle.top_busy(window)
            } else {
                self.handle.top_refused(window)
            }
        };
        Published::new(top, |client| {
            ListedClient::new(
                client,
                |key| self.blocks.hash(key),
                self.options.readable_keys,
            )
        })
    }

    async fn merged_top(&self, is_busy: bool, window: TopWindow) -> Option<MergedTop> {
        self.options
            .shared_top
            .as_ref()?
            .merged(is_busy, window, || self.published())
            .await
    }
}

impl<S: Store + 'static> LiveRules<S> {
    /// Returns the clients that all instances together have refused most in a window.
    ///
    /// It is `None` without [`shared_top`](super::super::LiveOptions::shared_top), and until Redis has answered once. It
    /// waits at most two seconds for Redis, and then returns the last figures with their age.
    pub async fn merged_top_refused(&self, window: TopWindow) -> Option<MergedTop> {
        self.shared().merged_top(false, window).await
    }

    /// Returns the clients from which all instances together got most requests in a window.
    ///
    /// It is `None` where [`merged_top_refused`](Self::merged_top_refused) is. Instances whose layer does not
    /// [count](tower_quota::RateLimitLayer::count_busy_clients) them add none.
    pub async fn merged_top_busy(&self, window: TopWindow) -> Option<MergedTop> {
        self.shared().merged_top(true, window).await
    }
}
