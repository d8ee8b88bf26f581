//! The clients with the most requests of one kind, over the last minute, ten minutes and hour.
//!
//! `sketch` counts the clients of ten seconds in bounded memory, `windows` adds such slices up to longer windows, and
//! `client` is what operators see.

mod client;
mod sketch;
mod windows;

use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Instant;

use tower_quota_core::{Key, Name};

pub use self::client::TopClient;
pub use self::windows::TopWindow;
use self::windows::Windows;

/// The clients with the most requests of one kind, such as refused ones.
#[derive(Default)]
pub(crate) struct TopClients(Mutex<Option<Box<Windows>>>);

impl TopClients {
    /// Counts requests of a client without waiting: while another thread counts, these are left out.
    ///
    /// `until` is the instant from which the client would be admitted.
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
        let mut windows = match self.0.try_lock() {
            Ok(windows) => windows,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        windows
            .get_or_insert_with(|| Box::new(Windows::new(now)))
            .count(limit, key, requests, now, until);
    }

    /// Returns the clients of a window, those with the most certain requests first.
    pub(crate) fn top(&self, window: TopWindow, now: Instant) -> Vec<TopClient> {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        windows
            .as_mut()
            .map(|windows| windows.top(window, now))
            .unwrap_or_default()
    }
}
