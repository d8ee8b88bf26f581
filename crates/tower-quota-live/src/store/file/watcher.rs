use core::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::store::MemoryRules;
use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

pub(super) struct Watcher {
    path: PathBuf,
    memory: Arc<MemoryRules>,
    watching: Mutex<Option<(RecommendedWatcher, Vec<PathBuf>)>>,
}

impl Watcher {
    pub(super) fn of(path: &Path, memory: Arc<MemoryRules>) -> Self {
        let watcher = Self {
            path: path.to_owned(),
            memory,
            watching: Mutex::default(),
        };
        watcher.renew();
        watcher
    }

    pub(super) fn renew(&self) {
        let folders = folders(&self.path);
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        if watching
            .as_ref()
            .is_none_or(|(_, watched)| *watched != folders)
        {
            // Without a watch, polls find changes.
            *watching = watch(&folders, &self.memory)
                .ok()
                .map(|watcher| (watcher, folders));
        }
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

fn watch(folders: &[PathBuf], memory: &Arc<MemoryRules>) -> notify::Result<RecommendedWatcher> {
    let memory = Arc::clone(memory);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        if event.is_ok_and(|event| is_change(&event)) {
            memory.announce();
        }
    })?;
    for folder in folders {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

/// Returns whether an event may be a change. Reads cause events too.
fn is_change(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}
