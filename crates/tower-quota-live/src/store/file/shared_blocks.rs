use core::time::Duration;
use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

use crate::blocks::Block;
use crate::store::{BlockChanges, RuleStore, RuleStoreError, StoreState};

/// The longest wait for blocks, so that a silent store does not delay documents.
const PATIENCE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct SharedBlocks {
    pub(super) store: Arc<dyn RuleStore>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The revision of the merged states, raised by a change of either part.
    revision: u64,
    documents: u64,
    blocks: Option<u64>,
    kept: HashMap<String, Arc<Block>>,
}

impl SharedBlocks {
    pub(super) fn new(store: Arc<dyn RuleStore>) -> Self {
        Self {
            store,
            seen: Mutex::default(),
        }
    }

    /// Announces changes of the other store by this function, until it returns false.
    pub(super) fn forward(&self, announce: impl Fn() -> bool + Send + 'static) {
        let mut changes: watch::Receiver<()> = self.store.changes();
        // The task ends with the sender, and the sender ends with the store.
        tokio::spawn(async move { while changes.changed().await.is_ok() && announce() {} });
    }

    async fn changes(&self, seen: &Seen) -> Result<Option<StoreState>, RuleStoreError> {
        let state = self.store.state(seen.blocks).await?;
        if !state
            .as_ref()
            .is_some_and(|state| state.has_lost(seen.blocks))
        {
            return Ok(state);
        }
        let kept: Vec<Block> = seen.kept.values().map(|block| (**block).clone()).collect();
        self.store.restore_blocks(&kept).await?;
        let restored = self.store.state(None).await?;
        // Leave a store that lost its blocks again to the next reading.
        Ok(restored.filter(|state| state.blocks.know_all(&kept)))
    }

    pub(super) async fn put_block(&self, block: Block) -> Result<Option<Block>, RuleStoreError> {
        let mut seen = self.seen.lock().await;
        let before = self.store.put_block(block.clone()).await?;
        let kept = before.clone().filter(|before| !block.replaces(before));
        let kept = kept.unwrap_or(block);
        seen.kept.insert(kept.id.clone(), Arc::new(kept));
        Ok(before)
    }

    pub(super) async fn remove_block(&self, id: &str) -> Result<Option<Block>, RuleStoreError> {
        let mut seen = self.seen.lock().await;
        let before = self.store.remove_block(id).await?;
        seen.kept.remove(id);
        Ok(before)
    }

    /// Adds the shared blocks to the state of the documents. Returns `None` if the caller knows
    /// both.
    pub(super) async fn merge(
        &self,
        known: Option<u64>,
        documents: StoreState,
    ) -> Result<Option<StoreState>, RuleStoreError> {
        let mut seen = self.seen.lock().await;
        let answer = timeout(PATIENCE, self.changes(&seen)).await;
        let answer = answer.unwrap_or_else(|_| {
            Err(RuleStoreError::unavailable(
                self.store.name(),
                "no answer in time",
            ))
        });
        let (changed, failure) = match answer {
            Ok(changed) => (changed, None),
            // Keep the known blocks in force.
            Err(error) => (None, Some(format!("blocks are not shared: {error}"))),
        };
        if changed.is_some() || seen.documents != documents.revision {
            seen.revision += 1;
            seen.documents = documents.revision;
        }
        if let Some(state) = changed {
            seen.blocks = Some(state.revision);
            state.blocks.apply_to(&mut seen.kept);
        }
        if failure.is_none() && known == Some(seen.revision) {
            return Ok(None);
        }
        Ok(Some(StoreState {
            revision: seen.revision,
            blocks: BlockChanges::all(seen.kept.values().map(|block| (**block).clone())),
            failure,
            ..documents
        }))
    }
}
