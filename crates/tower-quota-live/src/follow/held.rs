//! Changes blocks on this instance at once, and in the store as soon as the store answers.
//!
//! A change is held until the store has it. Its caller writes it to the store, and waits a moment only. Afterwards
//! the follower of the store writes the change.

use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use tokio::time::timeout;

use super::held_change::HeldChange;
use super::shared::{FollowedRules, Known};
use crate::audit::AuditRecord;
use crate::blocks::Block;
use crate::change::By;
use crate::store::{BlockChanges, MOST_BLOCKS, RuleStoreError};
use crate::time::Time;

/// The longest wait of a change for the store.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

impl FollowedRules {
    fn held(&self) -> MutexGuard<'_, HashMap<String, HeldChange>> {
        // Each entry is complete, so the map is valid even if a thread panicked.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the store has the last change of a block.
    pub(crate) fn is_shared(&self, id: &str) -> bool {
        !self.held().contains_key(id)
    }

    /// Applies the changes of the store, and then the held changes, which the store does not have.
    pub(super) fn apply_changes(&self, changes: BlockChanges) {
        let held = self.held();
        self.blocks.apply(changes);
        let changed = held.iter();
        let changed = changed.map(|(id, change)| (id.clone(), change.block.clone()));
        self.blocks.apply(BlockChanges {
            is_complete: false,
            changed: changed.collect(),
        });
    }

    pub(crate) async fn put_block(&self, block: Block) -> Result<Block, RuleStoreError> {
        let record = block.put_record(self.blocks.get(&block.id).as_ref());
        self.change_block(&block.id, Some(block.clone()), record)
            .await?;
        Ok(block)
    }

    pub(crate) async fn remove_block(
        self: &Arc<Self>,
        id: &str,
        by: By,
    ) -> Result<Option<Block>, RuleStoreError> {
        let known = || {
            self.blocks
                .get(id)
                .filter(|block| block.is_in_force(Time::now()))
        };
        // The block of another instance may not have been read yet.
        if known().is_none()
            && !matches!(timeout(PATIENCE, self.begin_refresh()).await, Ok(Ok(true)))
        {
            let reason = "no answer, and this instance knows no such block";
            return Err(RuleStoreError::unavailable(self.store.name(), reason));
        }
        let Some(block) = known() else {
            return Ok(None);
        };
        self.change_block(id, None, block.removal_record(by))
            .await?;
        Ok(Some(block))
    }

    /// Changes a block on this instance, and waits a moment for the store. `None` removes the block.
    ///
    /// # Errors
    /// Returns [`RuleStoreError::TooManyBlocks`], and holds nothing, if the store or this instance has no space.
    async fn change_block(
        &self,
        id: &str,
        block: Option<Block>,
        record: AuditRecord,
    ) -> Result<(), RuleStoreError> {
        // In a long outage, penalties may block any number of clients.
        if self.held().len() >= MOST_BLOCKS {
            return Err(RuleStoreError::TooManyBlocks);
        }
        let number = self.hold(id, block, record);
        let sharing = timeout(PATIENCE, async {
            let mut known = self.known.lock().await;
            self.share(&mut known, id, number).await
        });
        match sharing.await {
            Ok(Ok(Some(record))) => self.audit(record).await,
            Ok(Ok(None)) => {}
            Ok(Err(full @ RuleStoreError::TooManyBlocks)) => return Err(full),
            Ok(Err(error)) => self.leave_to_follower(id, number, &error.to_string()),
            Err(_) => self.leave_to_follower(id, number, "no answer in time"),
        }
        Ok(())
    }

    fn hold(&self, id: &str, block: Option<Block>, record: AuditRecord) -> u64 {
        let mut held = self.held();
        let number = fastrand::u64(..);
        let change = HeldChange {
            before: self.blocks.get(id),
            since: block.as_ref().map_or(record.time, |block| block.since),
            block: block.clone(),
            record: Some(record),
            has_space: true,
            number,
        };
        self.blocks.apply(BlockChanges::one(id, block));
        let earlier = held.insert(id.to_owned(), change);
        if let Some(record) = earlier.and_then(|earlier| earlier.record) {
            self.announce(record);
        }
        number
    }

    fn leave_to_follower(&self, id: &str, number: u64, reason: &str) {
        tracing::warn!(
            id,
            reason,
            "the change of a block holds on this instance only"
        );
        let mut held = self.held();
        let change = held.get_mut(id).filter(|change| change.number == number);
        if let Some(record) = change.and_then(|change| change.record.take()) {
            self.announce(record);
        }
        self.wake.notify_one();
    }

    /// Writes a change to the store. Returns its record, unless the record is announced or the change has no effect.
    async fn share(
        &self,
        known: &mut Known,
        id: &str,
        number: u64,
    ) -> Result<Option<AuditRecord>, RuleStoreError> {
        let change = self.held().get(id).cloned();
        let Some(mut change) = change.filter(|change| change.number == number) else {
            return Ok(None);
        };
        let Some(block) = change.block else {
            match self.store.remove_block(id).await? {
                Some(removed) => known.remember_removed(removed),
                None => change.record = None,
            }
            self.release(id, number, None);
            return Ok(change.record);
        };
        let before = match self.store.put_block(block.clone()).await {
            Err(full @ RuleStoreError::TooManyBlocks) => {
                if change.record.is_some() {
                    self.release(id, number, Some(change.before));
                } else if let Some(held) = self.held().get_mut(id) {
                    held.has_space = false;
                }
                return Err(full);
            }
            put => put?,
        };
        known.removed.remove(id);
        let kept = before.clone().filter(|before| !block.replaces(before));
        if kept.is_some() {
            self.release(id, number, Some(kept));
            return Ok(None);
        }
        self.release(id, number, None);
        Ok(change.record.map(|_| block.put_record(before.as_ref())))
    }

    /// Ends the hold of a change. `instead` replaces the block on this instance.
    fn release(&self, id: &str, number: u64, instead: Option<Option<Block>>) {
        let mut held = self.held();
        if held.get(id).is_some_and(|change| change.number == number) {
            held.remove(id);
            if let Some(block) = instead {
                self.blocks.apply(BlockChanges::one(id, block));
            }
        }
    }

    /// Writes the changes to the store that their callers have left. A newer block of the store wins.
    pub(super) async fn share_held(&self, known: &mut Known) -> Result<(), RuleStoreError> {
        let left: Vec<(String, HeldChange)> = {
            let (mut held, now) = (self.held(), Time::now());
            held.retain(|_, change| {
                let block = change.block.as_ref();
                change.record.is_some() || block.is_none_or(|block| block.is_in_force(now))
            });
            let left = held.iter();
            let left = left.filter(|(_, change)| change.record.is_none() && change.has_space);
            left.map(|(id, change)| (id.clone(), change.clone()))
                .collect()
        };
        if left.is_empty() {
            return Ok(());
        }
        let mut state = self.store.state(None).await?.unwrap_or_default();
        if let Some(failure) = state.failure {
            return Err(RuleStoreError::unavailable(self.store.name(), failure));
        }
        for (id, change) in left {
            let stored = state.blocks.changed.remove(&id).flatten();
            let newer = stored.filter(|stored| stored.since > change.since);
            if newer.is_some() {
                tracing::warn!(
                    id,
                    "a newer block in the store replaces the change on this instance"
                );
                self.release(&id, change.number, Some(newer));
                continue;
            }
            match self.share(known, &id, change.number).await {
                Err(error @ RuleStoreError::TooManyBlocks) => {
                    tracing::warn!(id, %error, "a block holds on this instance only");
                }
                shared => _ = shared?,
            }
        }
        Ok(())
    }
}
