use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

use super::{
    BlockChanges, BlockStore, MemoryRules, Point, Reply, RuleStore, RuleStoreError, StoreState,
};
use crate::audit::AuditRecord;
use crate::blocks::Block;
use crate::time::Time;
use crate::version::{NewVersion, Version, VersionInfo};

/// The longest wait for the store of the blocks, so that a silent store does not delay documents.
const PATIENCE: Duration = Duration::from_millis(500);

/// The longest wait for all blocks of a store that answers, for many calls over a slow link.
const READING: Duration = Duration::from_secs(20);

/// The number of merged states whose parts are known.
const KEPT: usize = 64;

/// The documents of a store with the blocks and audit records of another store.
#[derive(Debug)]
pub(crate) struct WithBlocks {
    documents: Arc<dyn RuleStore>,
    blocks: Arc<dyn BlockStore>,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    /// The revision of the last merged state.
    revision: u64,
    current: Option<u64>,
    /// The points of the documents and of the blocks, by the revision of the merged state.
    parts: BTreeMap<u64, [Point; 2]>,
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
    let now = u64::try_from(Time::now().unix_millis()).unwrap_or_default();
    Arc::new(WithBlocks {
        documents,
        blocks: blocks.unwrap_or_else(|| Arc::new(MemoryRules::new())),
        seen: Mutex::new(Seen {
            revision: now,
            current: None,
            parts: BTreeMap::new(),
        }),
    })
}

impl WithBlocks {
    /// Adds the blocks to the state of the documents. Returns `None` if the caller knows both.
    async fn merge(&self, known: Option<u64>) -> Result<Option<StoreState>, RuleStoreError> {
        let mut seen = self.seen.lock().await;
        let parts = known.and_then(|known| seen.parts.get(&known).copied());
        let [known_documents, known_blocks] =
            [0, 1].map(|part| parts.map(|parts| parts[part].revision));
        let documents = self.documents.state(known_documents).await?;
        let blocks = self.changed_blocks(known_blocks).await;
        if matches!((&documents, &blocks), (None, Ok(None))) {
            return Ok(None);
        }
        let mut state = documents.unwrap_or_else(|| StoreState {
            current: seen.current,
            parts,
            ..StoreState::default()
        });
        seen.current = state.current;
        // The revisions of the documents are not those of the merged states.
        let [of_documents, _] = state.points();
        state.began = 0;
        state.blocks = BlockChanges::default();
        let mut parts = [of_documents, parts.unwrap_or_default()[1]];
        match blocks {
            Ok(None) => {}
            Ok(Some(of_blocks)) => {
                parts[1] = of_blocks.points()[1];
                state.is_doubtful |= of_blocks.is_doubtful;
                state.blocks = of_blocks.blocks;
            }
            // Keep the known blocks in force.
            Err(error) => {
                state.failure = Some(format!("blocks are not shared: {error}"));
                state.parts = Some(parts);
                return Ok(Some(state));
            }
        }
        if seen.parts.get(&seen.revision) != Some(&parts) {
            seen.revision += 1;
            let revision = seen.revision;
            seen.parts.insert(revision, parts);
            if seen.parts.len() > KEPT {
                seen.parts.pop_first();
            }
        }
        state.revision = seen.revision;
        state.parts = Some(parts);
        Ok(Some(state))
    }

    /// Reads the blocks changed since a known revision. A silent store is noticed within [`PATIENCE`].
    async fn changed_blocks(
        &self,
        known: Option<u64>,
    ) -> Result<Option<StoreState>, RuleStoreError> {
        let silent = |_| RuleStoreError::unavailable(self.blocks.name(), "no answer in time");
        let mut patience = PATIENCE;
        if known.is_none() {
            // All blocks take many calls. Wait for them only if the store answers a short call.
            let answer = timeout(PATIENCE, self.blocks.audit(1)).await;
            answer.map_err(silent).flatten()?;
            patience = READING;
        }
        let blocks = timeout(patience, self.blocks.state(known)).await;
        blocks.map_err(silent).flatten()
    }
}

impl RuleStore for WithBlocks {
    fn name(&self) -> String {
        self.documents.name()
    }

    fn identity(&self) -> String {
        let (documents, blocks) = (self.documents.identity(), self.blocks.identity());
        format!("{documents} with blocks of {blocks}")
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

    fn restore<'a>(&'a self, version: &'a Version, known: u64) -> Reply<'a, bool> {
        self.documents.restore(version, known)
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
        self.blocks.put_block(block)
    }

    fn remove_block<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Block>> {
        self.blocks.remove_block(id)
    }

    fn record(&self, record: AuditRecord) -> Reply<'_, ()> {
        self.blocks.record(record)
    }

    fn audit(&self, most: usize) -> Reply<'_, Vec<AuditRecord>> {
        self.blocks.audit(most)
    }
}
