//! Blocks clients that are refused for long, by the rule of the options or of the document.

use core::time::Duration;
use std::sync::Arc;

use tower_quota::{Key, TopClient, TopWindow};

use super::shared::Shared;
use crate::audit::{Action, AuditRecord};
use crate::blocks::{AdaptiveRule, Block, BlockKind, NewBlock, Offence, Target, Tracker};
use crate::store::{BlockChanges, RuleStoreError};
use crate::time::Time;
use crate::wait::{now, pause};

/// The time between two looks at the refused clients.
const EVERY: Duration = Duration::from_secs(1);
/// The author of adaptive blocks.
const AUTHOR: &str = "adaptive";

impl Shared {
    /// Watches refused clients until it is closed.
    pub(crate) async fn adapt(self: Arc<Self>) {
        let (mut closing, mut tracker, start) =
            (self.closing.subscribe(), Tracker::default(), now());
        loop {
            tokio::select! {
                _ = closing.wait_for(|is_closing| *is_closing) => return,
                () = pause(EVERY) => {}
            }
            let Some(rule) = self.adaptive_rule() else {
                tracker = Tracker::default();
                continue;
            };
            self.block_offenders(&mut tracker, &rule, now().saturating_duration_since(start))
                .await;
        }
    }

    fn adaptive_rule(&self) -> Option<AdaptiveRule> {
        let in_force = self.in_force.load();
        in_force
            .as_ref()?
            .rules
            .document()
            .adaptive_block
            .as_ref()
            .map(AdaptiveRule::from)
    }

    /// Blocks the clients that have been refused for long at an instant of the tracker.
    pub(crate) async fn block_offenders(
        self: &Arc<Self>,
        tracker: &mut Tracker,
        rule: &AdaptiveRule,
        at: Duration,
    ) {
        let mut refused = self.handle.top_refused(TopWindow::Minute);
        // One counter for all clients, or for all without a key, is no client.
        refused.retain(|client| {
            client.key().scope() != Key::EVERYONE.scope() && !client.key().as_bytes().is_empty()
        });
        let latest = refused
            .iter()
            .map(|client| (self.blocks.hash(client.key()), client.last()));
        for Offence(hash) in tracker.observe(at, rule.after, latest) {
            let Some(client) = refused
                .iter()
                .find(|client| self.blocks.hash(client.key()) == hash)
            else {
                continue;
            };
            if let Err(error) = self.block_offender(client, rule).await {
                tracing::warn!(%error, "a client that is refused for long could not be blocked");
            }
        }
    }

    async fn block_offender(
        self: &Arc<Self>,
        client: &TopClient,
        rule: &AdaptiveRule,
    ) -> Result<(), RuleStoreError> {
        let target = match rule.network_of(client) {
            Some(network) => Target::Network(network),
            None => self.blocks.target(
                client.key(),
                client.text().filter(|_| self.options.readable_keys),
            ),
        };
        let now = Time::now();
        // The set holds entries that are forgotten by now, until the store has another revision.
        let known = self
            .blocks
            .get(&target.id())
            .filter(|known| known.is_kept(now));
        if known.as_ref().is_some_and(|known| known.is_in_force(now)) {
            return Ok(());
        }
        let strikes = known.map_or(0, |known| known.strikes);
        let length = rule.length(strikes);
        let reason = format!(
            "refused by \"{}\" for more than {:?}",
            client.limit(),
            rule.after
        );
        let mut block = Block::new(target, NewBlock::block(length, AUTHOR).reason(reason));
        (block.strikes, block.forgotten_at) = (strikes + 1, block.until.after(rule.memory(length)));
        self.put_block(block).await.map(drop)
    }

    /// Stores a block, logs it, and takes it over.
    pub(crate) async fn put_block(self: &Arc<Self>, block: Block) -> Result<Block, RuleStoreError> {
        // A reading that began before does not end after it, so the block stays in force here.
        let known = self.known.lock().await;
        let before = self.store.put_block(block.clone()).await?;
        self.blocks
            .apply(BlockChanges::one(&block.id, Some(block.clone())));
        drop(known);
        let what = match block.kind {
            BlockKind::Block => Action::Block,
            BlockKind::Allow => Action::Allow,
        };
        self.audit(AuditRecord {
            time: Time::now(),
            who: block.author.clone(),
            what,
            target: block.target.to_string(),
            before: before.map(|before| format!("until {}", before.until)),
            after: Some(format!("until {}", block.until)),
            comment: block.reason.clone(),
        })
        .await;
        Ok(block)
    }
}
