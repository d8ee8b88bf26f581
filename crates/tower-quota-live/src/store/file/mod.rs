//! A store that follows a file.
//!
//! The watcher watches the folder, since editors and Kubernetes replace files by renames. A
//! spurious event costs a read, and a poll finds changes after a lost event.

mod read;
mod shared_blocks;
mod watcher;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{Mutex, watch};
use tower_quota_rules::Format;

use self::shared_blocks::SharedBlocks;
use self::watcher::Watcher;
use super::{MemoryRules, Reply, RuleStore, RuleStoreError, StoreState};
use crate::audit::AuditRecord;
use crate::blocks::Block;
use crate::files;
use crate::version::{NewVersion, Version, VersionInfo};

/// A [`RuleStore`] that follows a file through edits, renames, and swapped symlinks of Kubernetes.
///
/// The file is only read. To change the rules, change the file.
///
/// Versions count the changes seen by this process, starting at 1. History, blocks and audit
/// records live in this process, unless you [share](Self::blocks_in) the blocks and records. While
/// the file is missing, the store is unavailable, and the rules stay in force.
///
/// Replace the file by a rename if you can. A file changed in the last 100 ms is read again until
/// it is stable.
///
/// ```no_run
/// use tower_quota::{MemoryStore, Policy, RateLimitLayer};
/// use tower_quota_live::{FileRules, LiveOptions, LiveRules};
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
/// let rules = FileRules::new("rules.yaml")?;
/// let live = LiveRules::start(layer.handle(), rules, LiveOptions::new()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FileRules {
    path: PathBuf,
    format: Format,
    max_bytes: u64,
    memory: Arc<MemoryRules>,
    shared: Option<SharedBlocks>,
    known: Mutex<Option<String>>,
    watcher: Arc<Watcher>,
}

impl FileRules {
    /// The default of the longest readable file, 16 MB.
    pub const MAX_BYTES: u64 = 16 << 20;

    /// Follows the file at a path, in the format of its extension. The file may appear later.
    ///
    /// Call this on a tokio runtime, for the watcher.
    ///
    /// # Errors
    /// Returns [`RuleStoreError::Unreadable`] if the extension names no format.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, RuleStoreError> {
        let path = path.into();
        let Some(format) = Format::of_path(&path) else {
            let reason = "its ending names no format: write rules in YAML or JSON, as .yaml or .json, and convert TOML by \
                 `yq -p toml -o yaml`";
            return Err(RuleStoreError::unreadable(display(&path), reason));
        };
        let (memory, known) = (Arc::new(MemoryRules::new()), Mutex::default());
        let watcher = Arc::new(Watcher::of(&path, Arc::clone(&memory)));
        Ok(Self {
            path,
            format,
            max_bytes: Self::MAX_BYTES,
            memory,
            shared: None,
            known,
            watcher,
        })
    }

    /// Sets the length of the longest readable file, in bytes.
    #[must_use]
    pub const fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Keeps blocks and audit records in another store, for all instances that follow this file.
    ///
    /// During an outage of the other store, documents still follow the file, known blocks stay in
    /// force, and the instance is unhealthy. Call this on a tokio runtime.
    ///
    /// ```no_run
    /// # #[cfg(feature = "redis")]
    /// # fn example() -> Result<(), tower_quota_live::RuleStoreError> {
    /// use tower_quota_live::{FileRules, RedisRules};
    ///
    /// let blocks = RedisRules::new("redis://127.0.0.1:6379", "orders")?;
    /// let rules = FileRules::new("rules.yaml")?.blocks_in(blocks);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn blocks_in(mut self, store: impl RuleStore) -> Self {
        let shared = SharedBlocks::new(Arc::new(store));
        let memory = Arc::downgrade(&self.memory);
        shared.forward(move || memory.upgrade().map(|memory| memory.announce()).is_some());
        self.shared = Some(shared);
        self
    }

    fn block_store(&self) -> &dyn RuleStore {
        match &self.shared {
            Some(shared) => &*shared.store,
            None => &*self.memory,
        }
    }

    async fn refresh(&self) -> Result<(), RuleStoreError> {
        let mut known = self.known.lock().await;
        let watcher = Arc::clone(&self.watcher);
        let renewed = files::blocking(move || {
            watcher.renew();
            Ok(())
        });
        renewed.await.map_err(|error| self.unavailable(error))?;
        let text = read::settled(&self.path, self.max_bytes).await;
        let text = text.map_err(|error| self.unavailable(error))?;
        if known.as_ref() != Some(&text) {
            self.memory
                .put_now(None, NewVersion::new(text.clone(), self.format, "file"))?;
            *known = Some(text);
        }
        Ok(())
    }

    fn unavailable(&self, error: io::Error) -> RuleStoreError {
        RuleStoreError::unavailable(self.name(), error)
    }
}

fn display(path: &Path) -> String {
    format!("file {}", path.display())
}

impl RuleStore for FileRules {
    fn name(&self) -> String {
        display(&self.path)
    }

    fn state(&self, known: Option<u64>) -> Reply<'_, Option<StoreState>> {
        Box::pin(async move {
            self.refresh().await?;
            let Some(shared) = &self.shared else {
                return self.memory.state(known).await;
            };
            shared
                .merge(known, self.memory.state(None).await?.unwrap_or_default())
                .await
        })
    }

    fn version(&self, number: u64) -> Reply<'_, Option<Version>> {
        self.memory.version(number)
    }

    fn history(&self, most: usize) -> Reply<'_, Vec<VersionInfo>> {
        self.memory.history(most)
    }

    fn put(&self, _expected: Option<u64>, _new: NewVersion) -> Reply<'_, Version> {
        let error = RuleStoreError::ReadOnly(self.name());
        Box::pin(core::future::ready(Err(error)))
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn shares_blocks(&self) -> bool {
        self.shared
            .as_ref()
            .is_some_and(|shared| shared.store.shares_blocks())
    }

    fn restore<'a>(&'a self, _version: &'a Version) -> Reply<'a, bool> {
        // Never restore a missing file, which an operator may have removed on purpose.
        Box::pin(async { Ok(false) })
    }

    fn restore_blocks<'a>(&'a self, blocks: &'a [Block]) -> Reply<'a, ()> {
        self.block_store().restore_blocks(blocks)
    }

    fn put_block(&self, block: Block) -> Reply<'_, Option<Block>> {
        match &self.shared {
            Some(shared) => Box::pin(shared.put_block(block)),
            None => self.memory.put_block(block),
        }
    }

    fn remove_block<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Block>> {
        match &self.shared {
            Some(shared) => Box::pin(shared.remove_block(id)),
            None => self.memory.remove_block(id),
        }
    }

    fn record(&self, record: AuditRecord) -> Reply<'_, ()> {
        self.block_store().record(record)
    }

    fn audit(&self, most: usize) -> Reply<'_, Vec<AuditRecord>> {
        self.block_store().audit(most)
    }

    fn changes(&self) -> watch::Receiver<()> {
        self.memory.changes()
    }
}
