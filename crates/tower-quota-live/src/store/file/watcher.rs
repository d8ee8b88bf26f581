//! Watches the folder of a file.

use core::fmt;
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::store::MemoryRules;

/// Changes that follow within this time are one.
const QUIET_AFTER: Duration = Duration::from_millis(50);
/// A file that is changed all the time is read this often.
const MOST_QUIETS: u32 = 10;

/// Watches the folder of a file, and that of the file that a link leads to.
pub(super) struct Watcher {
    path: PathBuf,
    /// The watch, with the folders that are watched.
    watching: Mutex<Option<(RecommendedWatcher, Vec<PathBuf>)>>,
    events: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl Watcher {
    pub(super) fn of(path: &Path, memory: Arc<MemoryRules>) -> Self {
        let events = watch::Sender::new(());
        let task = tokio::spawn(debounce(events.subscribe(), memory));
        let watcher = Self {
            path: path.to_owned(),
            watching: Mutex::default(),
            events,
            task,
        };
        watcher.renew();
        watcher
    }

    /// Watches the folders anew if they are others by now, or could not be watched.
    pub(super) fn renew(&self) {
        let folders = folders(&self.path);
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        if watching
            .as_ref()
            .is_none_or(|(_, watched)| *watched != folders)
        {
            // Without a watch the polls find changes.
            *watching = watch(&folders, &self.events)
                .ok()
                .map(|watcher| (watcher, folders));
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Returns the folder of the file, and that of the file that a link leads to.
fn folders(path: &Path) -> Vec<PathBuf> {
    let folder = |path: &Path| match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut folders = vec![folder(path)];
    folders.extend(path.canonicalize().ok().map(|target| folder(&target)));
    folders.retain(|folder| folder.is_dir());
    folders.dedup();
    folders
}

fn watch(folders: &[PathBuf], events: &watch::Sender<()>) -> notify::Result<RecommendedWatcher> {
    let events = events.clone();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        if event.is_ok_and(|event| is_change(&event)) {
            events.send_replace(());
        }
    })?;
    for folder in folders {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

/// Returns whether an event may be a change. Reading the file causes events too.
fn is_change(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

/// Announces events, several together.
async fn debounce(mut events: watch::Receiver<()>, memory: Arc<MemoryRules>) {
    while events.changed().await.is_ok() {
        for _ in 0..MOST_QUIETS {
            if timeout(QUIET_AFTER, events.changed()).await.is_err() {
                break;
            }
        }
        memory.announce();
    }
}
