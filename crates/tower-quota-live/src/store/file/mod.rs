//! A store that follows a file.
//!
//! The watcher watches the folder, since editors and Kubernetes replace files by renames. A
//! spurious event costs a read, and a poll finds changes after a lost event.

mod read;
mod watcher;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{Mutex, watch};
use tower_quota_rules::Document;

use self::watcher::Watcher;
use super::{MemoryRules, Reply, RuleStore, RuleStoreError, StoreState};
use crate::files;
use crate::version::{NewVersion, Version, VersionInfo};

/// A [`RuleStore`] that follows a file through edits, renames, and swapped symlinks of Kubernetes.
///
/// The file is only read. To change the rules, change the file.
///
/// Versions count the changes seen by this process, starting at 1, and the history lives in this
/// process. Blocks and audit records do too, unless you [share](crate::LiveOptions::blocks_in) them.
/// While the file is missing, the store is unavailable, and the rules stay in force.
///
/// Replace the file by a rename if you can. A file changed in the last 100 ms is read again until
/// it is stable, and a file that has lost its last line `end: true` until it has the line, for a second. A file may
/// [include](Document::include) another, which is followed too.
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
    max_bytes: u64,
    memory: Arc<MemoryRules>,
    known: Mutex<Option<String>>,
    watcher: Arc<Watcher>,
}

impl FileRules {
    /// The default of the longest readable file, 16 MB.
    pub const MAX_BYTES: u64 = 16 << 20;

    /// Follows the file at a path, which ends in `.yaml`, `.yml` or `.json`. The file may appear later.
    ///
    /// Call this on a tokio runtime, for the watcher.
    ///
    /// # Errors
    /// Returns [`RuleStoreError::Unreadable`] for another extension.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, RuleStoreError> {
        let path = path.into();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if !matches!(extension, Some("yaml" | "yml" | "json")) {
            let reason = "it is not a .yaml file: write rules in YAML, and convert TOML by `yq -p toml -o yaml`";
            return Err(RuleStoreError::unreadable(display(&path), reason));
        }
        let (memory, known) = (Arc::new(MemoryRules::new()), Mutex::default());
        let watcher = Arc::new(Watcher::of(&path, Arc::clone(&memory)));
        Ok(Self {
            path,
            max_bytes: Self::MAX_BYTES,
            memory,
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

    async fn refresh(&self) -> Result<(), RuleStoreError> {
        let mut known = self.known.lock().await;
        let watcher = Arc::clone(&self.watcher);
        let renewed = files::blocking(move || {
            watcher.renew();
            Ok(())
        });
        renewed.await.map_err(|error| self.unavailable(error))?;
        let must_end = known.as_deref().is_some_and(read::has_end);
        let text = read::settled(&self.path, self.max_bytes, must_end).await;
        let text = text.map_err(|error| self.unavailable(error))?;
        let text = self.merged(text).await?;
        if known.as_ref() != Some(&text) {
            self.memory
                .put_now(None, NewVersion::new(text.clone(), "file"))?;
            *known = Some(text);
        }
        Ok(())
    }

    /// Returns a text with the document that it includes, and watches the included file.
    async fn merged(&self, text: String) -> Result<String, RuleStoreError> {
        let max_bytes = self.max_bytes;
        let path = self.path.clone();
        let watcher = Arc::clone(&self.watcher);
        let merged = files::blocking(move || {
            let most = usize::try_from(max_bytes).unwrap_or(usize::MAX);
            let mut included = None;
            let merged = Document::merged(&text, most, |name| {
                let path = path.with_file_name("").join(name);
                let text = File::open(&path).and_then(|file| read::text(&file, max_bytes));
                included = Some(path);
                text
            });
            watcher.include(included);
            Ok(merged.map(|merged| merged.unwrap_or(text)))
        });
        let merged = merged.await.map_err(|error| self.unavailable(error))?;
        merged.map_err(|problems| RuleStoreError::unreadable(self.name(), problems))
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
            self.memory.state(known).await
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

    fn changes(&self) -> watch::Receiver<()> {
        self.memory.changes()
    }
}
