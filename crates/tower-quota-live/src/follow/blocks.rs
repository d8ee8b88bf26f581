//! Blocks clients at the last step of a limit's penalty.

use core::time::Duration;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use tower_quota::{Key, Name, TopClient, TopWindow};

use super::shared::FollowedRules;
use crate::blocks::{Block, BlockKind, NewBlock};
use crate::time::Time;
use crate::wait::{now, pause};

const EVERY: Duration = Duration::from_secs(1);
const AUTHOR: &str = "penalty";

impl FollowedRules {
    pub(crate) async fn block_penalised(self: Arc<Self>) {
        let (mut closing, mut since) = (self.closing.subscribe(), now());
        loop {
            tokio::select! {
                _ = closing.wait_for(|is_closing| *is_closing) => return,
                () = pause(EVERY) => {}
            }
            let penalties = self.blocking_penalties();
            let last_look = core::mem::replace(&mut since, now());
            if penalties.is_empty() {
                continue;
            }
            for client in self.handle.top_refused(TopWindow::Minute) {
                if let Some(longest) = penalties.get(&client.limit).copied()
                    && has_reached(&client, longest, last_look)
                {
                    // A client must not wait for the block of another one, which takes a second while the store hangs.
                    let shared = Arc::clone(&self);
                    tokio::spawn(async move { shared.block_client(&client, longest).await });
                }
            }
        }
    }

    fn blocking_penalties(&self) -> HashMap<Name, Duration> {
        let in_force = self.in_force.load();
        let document = in_force.as_ref().map(|in_force| in_force.rules.document());
        let limits = document
            .into_iter()
            .flat_map(|document| document.all_limits());
        let blocking = limits.filter_map(|limit| {
            let rule = limit.penalty.filter(|rule| rule.block.is_some())?;
            Some((Name::from(&limit.name), rule.longest()?))
        });
        blocking.collect()
    }

    async fn block_client(&self, client: &TopClient, length: Duration) {
        let text = client.text().filter(|_| self.options.readable_keys);
        let target = self.blocks.target(&client.key, text);
        let known = self.blocks.get(&target.id());
        if known.is_some_and(|known| known.is_in_force(Time::now())) {
            return;
        }
        let limit = client.limit;
        let reason = format!("asked \"{limit}\" again and again while it was refused");
        let mut new = NewBlock::block(length, AUTHOR).reason(reason);
        new.kind = BlockKind::Block {
            limit: Some(limit.to_string()),
        };
        if let Err(error) = self.put_block(Block::new(target, new)).await {
            tracing::warn!(%error, "a client that ignores its penalty could not be blocked");
        }
    }
}

/// Returns whether a client was refused for the whole length of the penalty since the last check.
///
/// At the last step, a refusal restarts the penalty, so the wait equals its length.
fn has_reached(client: &TopClient, longest: Duration, last_look: Instant) -> bool {
    // Leave out counters of many clients, which are the counter of everyone and of all clients
    // without a key.
    let is_one_client =
        client.key.scope() != Key::EVERYONE.scope() && !client.key.as_bytes().is_empty();
    let wait = client.until.saturating_duration_since(client.last);
    is_one_client && client.last >= last_look && wait == longest
}
