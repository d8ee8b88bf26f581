use core::time::Duration;
use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

use super::{BlockChanges, BlockStore, MemoryRules, Reply, RuleStore, RuleStoreError, StoreState};
use crate::audit::AuditRecord;
use crate::blocks::Block;
use crate::version::{NewVersion, Version, VersionInfo};

/// The longest wait for blocks, so that a silent store does not delay documents.
const PATIENCE: Duration = Duration::from_millis(500);

/// The documents of a store with the blocks and audit records of another store.
#[derive(Debug)]
pub(crate) struct WithBlocks {
    documents: Arc<dyn RuleStore>,
    blocks: Arc<dyn BlockStore>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The revision of the merged states, raised by a change of either part.
    revision: u64,
    documents: Option<StoreState>,
    blocks: Option<u64>,
    kept: HashMap<String, Arc<Block>>,
}

/// Chooses where blocks and audit records live: in your store, else in the store of the documents,
/// else in the memory of this instance.
pub(crate) fn with_blocks(
    documents: Arc<dyn RuleStore>,
    blocks: Option<Arc<dyn BlockStore>>,
) -> Arc<dyn BlockStore> {
    if blocks.is_none()
        && let Some(both) = Arc::clone(&documents).blocks()
    {
        return both;
    }
    Arc::new(WithBlocks {
        documents,
        blocks: blocks.unwrap_or_else(|| Arc::new(MemoryRules::new())),
        seen: Mutex::default(),
    })
}

impl WithBlocks {
    async fn block_changes(&self, seen: &Seen) -> Result<Option<StoreState>, RuleStoreError> {
        let state = self.blocks.state(seen.blocks).await?;
        if !state
            .as_ref()
            .is_some_and(|state| state.has_lost(seen.blocks))
        {
            return Ok(state);
        }
        let kept: Vec<Block> = seen.kept.values().map(|block| (**block).clone()).collect();
        self.blocks.restore_blocks(&kept).await?;
        let restored = self.blocks.state(None).await?;
        // Leave a store that lost its blocks again to the next reading.
        Ok(restored.filter(|state| state.blocks.know_all(&kept)))
    }

    /// Adds the blocks to the state of the documents. Returns `None` if the caller knows both.
    async fn merge(&self, known: Option<u64>) -> Result<Option<StoreState>, RuleStoreError> {
        let mut seen = self.seen.lock().await;
        let of_documents = seen.documents.as_ref().map(|documents| documents.revision);
        let documents = self.documents.state(known.and(of_documents)).await?;
        let answer = timeout(PATIENCE, self.block_changes(&seen)).await;
        let answer = answer.unwrap_or_else(|_| {
            Err(RuleStoreError::unavailable(
                self.blocks.name(),
                "no answer in time",
            ))
        });
        let (changed, failure) = match answer {
            Ok(changed) => (changed, None),
            // Keep the known blocks in force.
            Err(error) => (None, Some(format!("blocks are not shared: {error}"))),
        };
        if let Some(documents) = documents {
            seen.revision += u64::from(of_documents != Some(documents.revision));
            seen.documents = Some(documents);
        }
        if let Some(state) = changed {
            seen.revision += 1;
            seen.blocks = Some(state.revision);
            state.blocks.apply_to(&mut seen.kept);
        }
        if failure.is_none() && known == Some(seen.revision) {
            return Ok(None);
        }
        Ok(Some(StoreState {
            revision: seen.revision,
            // The revisions of the documents are not those of the merged states.
            began: 0,
            blocks: BlockChanges::all(seen.kept.values().map(|block| (**block).clone())),
            failure,
            ..seen.documents.clone().unwrap_or_default()
        }))
    }
}

impl RuleStore for WithBlocks {
    fn name(&self) -> String {
        self.documents.name()
    }

    fn state(&self, known: Option<u64>) -> Reply<'_, Option<StoreState>> {
        Box::pin(self.merge(known))
    }

    fn version(&self, number: u64) -> Reply<'_, Option<Version>> {
        self.documents.version(number)
    }

    fn history(&self, most: usize) -> Reply<'_, Vec<VersionInfo>> {
        self.documents.history(most)
    }

    fn put(&self, expected: Option<u64>, new: NewVersion) -> Reply<'_, Version> {
        self.documents.put(expected, new)
    }

    fn changes(&self) -> watch::Receiver<()> {
        let (changed, receiver) = watch::channel(());
        for mut of_part in [self.documents.changes(), self.blocks.changes()] {
            let changed = changed.clone();
            // The task ends with its store, or at the first change after the last receiver.
            tokio::spawn(async move {
                while of_part.changed().await.is_ok() && changed.send(()).is_ok() {}
            });
        }
        receiver
    }

    fn is_read_only(&self) -> bool {
        self.documents.is_read_only()
    }

    fn restore<'a>(&'a self, version: &'a Version) -> Reply<'a, bool> {
        self.documents.restore(version)
    }
}

impl BlockStore for WithBlocks {
    fn shares_blocks(&self) -> bool {
        self.blocks.shares_blocks()
    }

    fn restore_blocks<'a>(&'a self, blocks: &'a [Block]) -> Reply<'a, ()> {
        self.blocks.restore_blocks(blocks)
    }

    fn put_block(&self, block: Block) -> Reply<'_, Option<Block>> {
        Box::pin(async move {
            let mut seen = self.seen.lock().await;
            let before = self.blocks.put_block(block.clone()).await?;
            let kept = before.clone().filter(|before| !block.replaces(before));
            let kept = kept.unwrap_or(block);
            seen.kept.insert(kept.id.clone(), Arc::new(kept));
            Ok(before)
        })
    }

    fn remove_block<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Block>> {
        Box::pin(async move {
            let mut seen = self.seen.lock().await;
            let before = self.blocks.remove_block(id).await?;
            seen.kept.remove(id);
            Ok(before)
        })
    }

    fn record(&self, record: AuditRecord) -> Reply<'_, ()> {
        self.blocks.record(record)
    }

    fn audit(&self, most: usize) -> Reply<'_, Vec<AuditRecord>> {
        self.blocks.audit(most)
    }
}
