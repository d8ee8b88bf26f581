//! Blocks and audit records that the followers of a file share in another store.

use core::time::Duration;
use std::sync::Arc;

use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

use crate::live::blocks::Block;
use crate::live::store::{RuleStore, RuleStoreError, StoreState};

/// The longest that documents wait for blocks: a file is followed while the other store is silent.
const PATIENCE: Duration = Duration::from_millis(500);

/// A store whose blocks and audit records are used beside the documents of a file.
#[derive(Debug)]
pub(super) struct SharedBlocks {
    pub(super) store: Arc<dyn RuleStore>,
    seen: Mutex<Seen>,
}

/// The last state that was merged.
#[derive(Debug, Default)]
struct Seen {
    /// The revision of the merged states: it rises when either part has changed.
    revision: u64,
    documents: u64,
    blocks: Option<u64>,
    kept: Vec<Block>,
}

impl SharedBlocks {
    pub(super) fn new(store: Arc<dyn RuleStore>) -> Self {
        Self {
            store,
            seen: Mutex::default(),
        }
    }

    /// Announces the changes of the other store by this function, until it returns false.
    pub(super) fn forward(&self, announce: impl Fn() -> bool + Send + 'static) {
        let mut changes: watch::Receiver<()> = self.store.changes();
        // The sender ends with the store, and the task with the sender.
        tokio::spawn(async move { while changes.changed().await.is_ok() && announce() {} });
    }

    /// Adds the shared blocks to the state of the documents. Returns `None` if both are as the caller knows them.
    pub(super) async fn merge(
        &self,
        known: Option<u64>,
        documents: StoreState,
    ) -> Result<Option<StoreState>, RuleStoreError> {
        let mut seen = self.seen.lock().await;
        let answer = timeout(PATIENCE, self.store.state(seen.blocks)).await;
        let answer = answer.unwrap_or_else(|_| {
            Err(RuleStoreError::unavailable(
                self.store.name(),
                "no answer in time",
            ))
        });
        let (changed, failure) = match answer {
            Ok(changed) => (changed, None),
            // The blocks that are known stay in force.
            Err(error) => (None, Some(format!("blocks are not shared: {error}"))),
        };
        if changed.is_some() || seen.documents != documents.revision {
            seen.revision += 1;
            seen.documents = documents.revision;
        }
        if let Some(state) = changed {
            (seen.blocks, seen.kept) = (Some(state.revision), state.blocks);
        }
        if failure.is_none() && known == Some(seen.revision) {
            return Ok(None);
        }
        Ok(Some(StoreState {
            revision: seen.revision,
            blocks: seen.kept.clone(),
            failure,
            ..documents
        }))
    }
}
