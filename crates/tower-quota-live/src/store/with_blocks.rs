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
    /// The revision of the documents before the last change.
    former_documents: u64,
    blocks: Option<u64>,
    /// Whether the last call for blocks failed.
    is_doubtful: bool,
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
        // Read everything after a failure, because the store may have lost changes meanwhile.
        let known = seen.blocks.filter(|_| !seen.is_doubtful);
        let Some(state) = self.blocks.state(known).await? else {
            return Ok(None);
        };
        let may_have_lost =
            |known: &u64| seen.is_doubtful || state.is_doubtful || state.has_lost(Some(*known));
        let Some(known) = seen.blocks.filter(may_have_lost) else {
            return Ok(Some(state));
        };
        let kept = seen.kept.values().map(|block| Block::clone(block));
        let lost = state.blocks.differences(kept.collect());
        if lost.changed.is_empty() {
            return Ok(Some(state));
        }
        let restored = self.blocks.restore_blocks(known, &lost).await?;
        if !restored.is_empty() {
            let store = self.blocks.name();
            tracing::warn!(
                store,
                "the store has lost changes of blocks. This instance has put the changes back"
            );
            let record = AuditRecord::of_restored(None, restored.len());
            record.announce();
            record.store(&*self.blocks).await;
        }
        let again = self.blocks.state(None).await?;
        // Leave a store that lost its blocks again to the next reading.
        Ok(again.filter(|state| state.blocks.know_all(&restored)))
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
        seen.is_doubtful = answer.is_err();
        let (changed, failure) = match answer {
            Ok(changed) => (changed, None),
            // Keep the known blocks in force.
            Err(error) => (None, Some(format!("blocks are not shared: {error}"))),
        };
        let is_doubtful = documents.as_ref().is_some_and(|state| state.is_doubtful);
        let knows_blocks = known == Some(seen.revision);
        if let Some(documents) = documents {
            if of_documents != Some(documents.revision) {
                seen.revision += 1;
                seen.former_documents = of_documents.unwrap_or(0);
            }
            seen.documents = Some(documents);
        }
        let mut blocks = BlockChanges::default();
        if let Some(state) = changed {
            seen.revision += 1;
            seen.blocks = Some(state.revision);
            blocks = state.blocks.clone();
            state.blocks.apply_to(&mut seen.kept);
        }
        if !knows_blocks {
            blocks = BlockChanges::all(seen.kept.values().map(|block| Block::clone(block)));
        }
        if failure.is_none() && known == Some(seen.revision) {
            return Ok(None);
        }
        Ok(Some(StoreState {
            revision: seen.revision,
            // The revisions of the documents are not those of the merged states.
            began: 0,
            is_doubtful,
            blocks,
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

    fn restore<'a>(&'a self, version: &'a Version, _known: u64) -> Reply<'a, bool> {
        Box::pin(async move {
            let known = self.seen.lock().await.former_documents;
            self.documents.restore(version, known).await
        })
    }
}

impl BlockStore for WithBlocks {
    fn shares_blocks(&self) -> bool {
        self.blocks.shares_blocks()
    }

    fn restore_blocks<'a>(&'a self, known: u64, lost: &'a BlockChanges) -> Reply<'a, Vec<String>> {
        self.blocks.restore_blocks(known, lost)
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
