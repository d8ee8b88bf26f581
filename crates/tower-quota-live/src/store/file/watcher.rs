use core::fmt;
use core::time::Duration;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::store::MemoryRules;

/// The time within which several events are a single change.
const QUIET_AFTER: Duration = Duration::from_millis(50);
const MOST_QUIETS: u32 = 10;

pub(super) struct Watcher {
    path: PathBuf,
    included: Mutex<Option<PathBuf>>,
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
            included: Mutex::default(),
            watching: Mutex::default(),
            events,
            task,
        };
        watcher.renew();
        watcher
    }

    /// Watches the file that the document includes, too.
    pub(super) fn include(&self, path: Option<PathBuf>) {
        let mut included = self.included.lock().unwrap_or_else(PoisonError::into_inner);
        if *included != path {
            *included = path;
            drop(included);
            self.renew();
        }
    }

    pub(super) fn renew(&self) {
        let included = self.included.lock().unwrap_or_else(PoisonError::into_inner);
        let mut folders = folders(&self.path);
        folders.extend(included.iter().flat_map(|path| self::folders(path)));
        drop(included);
        let mut seen = HashSet::new();
        folders.retain(|folder| seen.insert(folder.clone()));
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        if watching
            .as_ref()
            .is_none_or(|(_, watched)| *watched != folders)
        {
            // If watching fails, polls find the changes.
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

/// Returns whether an event may be a change, because reads cause events too.
fn is_change(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

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
