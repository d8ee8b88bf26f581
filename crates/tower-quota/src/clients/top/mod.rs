//! Counts the clients with the most requests in windows of time.
//!
//! `sketch` counts a slice, `windows` adds slices, and `runs` knows since when a client is at its limit.

mod client;
mod observer;
mod runs;
mod sketch;
mod windows;

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Instant;

use tower_quota_core::{Key, Name, Timestamp};

pub use self::client::TopClient;
pub(crate) use self::observer::{BusyClients, RefusedClients};
use self::runs::Runs;
use self::sketch::Seen;
pub use self::windows::TopWindow;
use self::windows::Window;

#[derive(Default)]
pub(crate) struct TopClients {
    /// Hashes with a secret, so that clients cannot choose equal hashes.
    hasher: RandomState,
    counts: Mutex<Option<Counts>>,
}

struct Counts {
    windows: [Window; 3],
    runs: Runs,
}

impl TopClients {
    /// Skips requests while another thread counts, so requests never wait. A refused request has a time.
    pub(crate) fn count(
        &self,
        limit: Name,
        key: &Key<'_>,
        requests: u64,
        now: Instant,
        until: Instant,
        refused_at: Option<Timestamp>,
    ) {
        if key.as_bytes().len() > TopClient::LONGEST_KEY {
            return;
        }
        let mut counts = match self.counts.try_lock() {
            Ok(counts) => counts,
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
        let counts = counts.get_or_insert_with(|| Counts {
            windows: TopWindow::ALL.map(|window| Window::new(window, now)),
            runs: Runs::default(),
        });
        for window in &mut counts.windows {
            window.count(hash, &seen);
        }
        if let Some(at) = refused_at {
            counts.runs.refused(hash, at, until - now);
        }
    }

    pub(crate) fn top(&self, window: TopWindow, now: Instant, at: Timestamp) -> Vec<TopClient> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Counts { windows, runs }) = &mut *counts else {
            return Vec::new();
        };
        let mut clients = windows[window as usize].top(now);
        for client in &mut clients {
            let hash = self.hasher.hash_one((client.limit.id(), &client.key));
            let since = runs.since(hash, at);
            client.since = since.and_then(|since| now.checked_sub(at.since(since)));
        }
        clients
    }

    /// Returns the longest time since the last admission of a client that is still refused.
    #[cfg(feature = "metrics")]
    pub(crate) fn longest_unadmitted(&self, now: Timestamp) -> core::time::Duration {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = counts.as_ref().map(|counts| &counts.runs);
        let longest = runs.map(|runs| runs.longest_unadmitted(now));
        longest.unwrap_or_default()
    }
}
