//! Counts the clients with the most requests in windows of time.
//!
//! `sketch` counts a slice, and `windows` adds slices.

mod client;
mod observer;
mod sketch;
mod windows;

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Instant;

use tower_quota_core::{Key, Name};

pub use self::client::TopClient;
pub(crate) use self::observer::{BusyClients, RefusedClients};
use self::sketch::Seen;
pub use self::windows::TopWindow;
use self::windows::Window;

#[derive(Default)]
pub(crate) struct TopClients {
    /// Hashes with a secret, so that clients cannot choose equal hashes.
    hasher: RandomState,
    windows: Mutex<Option<[Window; 3]>>,
}

impl TopClients {
    /// Skips requests while another thread counts, so requests never wait.
    pub(crate) fn count(
        &self,
        limit: Name,
        key: &Key<'_>,
        requests: u64,
        now: Instant,
        until: Instant,
    ) {
        if key.as_bytes().len() > TopClient::LONGEST_KEY {
            return;
        }
        let mut windows = match self.windows.try_lock() {
            Ok(windows) => windows,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let hash = self.hasher.hash_one((limit.id(), key));
        let seen = Seen {
            limit,
            key: key.clone(),
            requests,
            last: now,
            until,
        };
        let new = || TopWindow::ALL.map(|window| Window::new(window, now));
        for window in windows.get_or_insert_with(new) {
            window.count(hash, &seen);
        }
    }

    pub(crate) fn top(&self, window: TopWindow, now: Instant) -> Vec<TopClient> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *windows {
            Some(windows) => windows[window as usize].top(now),
            None => Vec::new(),
        }
    }
}
