//! Publishes the figures of live rules, and reads the sums of all instances.

use std::sync::Arc;

use tower_quota::{Store, TopWindow};

use super::merged::{MergedClient, MergedTop};
use crate::live::LiveRules;
use crate::live::follow::Shared;
use crate::live::store::RuleStoreError;
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
            let published = top
                .publish(|is_busy, window| self.top_clients(is_busy, window))
                .await;
            if let (Err(error), false) = (&published, is_failing) {
                tracing::warn!(%error, "the top clients of this instance are not published");
            }
            is_failing = published.is_err();
        }
    }

    fn top_clients(&self, is_busy: bool, window: TopWindow) -> Vec<MergedClient> {
        let clients = if is_busy {
            self.handle.top_busy(window)
        } else {
            self.handle.top_refused(window)
        };
        let is_readable = self.options.readable_keys;
        clients
            .iter()
            .map(|client| MergedClient::new(client, |key| self.blocks.hash(key), is_readable))
            .collect()
    }
}

impl<S: Store + 'static> LiveRules<S> {
    /// Returns the clients that all instances together have refused most in a window, or that sent most requests.
    ///
    /// It is `None` without [`shared_top`](super::super::LiveOptions::shared_top). The figures are at most one interval
    /// old. Instances whose layer does not [count](tower_quota::RateLimitLayer::count_busy_clients) busy clients add none
    /// of them.
    ///
    /// # Errors
    /// [`RuleStoreError`] if Redis does not answer within two seconds.
    pub async fn merged_top(
        &self,
        is_busy: bool,
        window: TopWindow,
    ) -> Result<Option<MergedTop>, RuleStoreError> {
        match &self.shared().options.shared_top {
            Some(top) => top.merged(is_busy, window).await.map(Some),
            None => Ok(None),
        }
    }
}
