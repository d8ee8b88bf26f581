//! Clients that an operator has blocked in this process.

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tower_quota_core::{Key, Name};

/// The maximum number of blocks in one process.
const MAX_BLOCKS: usize = 100_000;

/// The blocks of a process, each with the instant at which it ends.
#[derive(Default)]
pub(crate) struct Blocks {
    /// The number of blocks, so that requests take no lock while there are none.
    count: AtomicUsize,
    until: Mutex<HashMap<Blocked, Instant>>,
}

/// A limit, and the scope and bytes of a key.
type Blocked = (Name, Name, Box<[u8]>);

impl Blocks {
    /// Blocks a client, or extends its block. Returns `false` if there are too many blocks.
    pub(crate) fn insert(&self, limit: Name, key: &Key<'_>, length: Duration) -> bool {
        let now = super::now();
        // A block whose end cannot be represented lasts for a century.
        let until = now
            .checked_add(length)
            .unwrap_or(now + Duration::from_secs(3_155_760_000));
        let mut blocks = self.lock();
        if blocks.len() >= MAX_BLOCKS {
            blocks.retain(|_, until| *until > now);
        }
        let has_room = blocks.len() < MAX_BLOCKS;
        if has_room {
            blocks.insert(blocked(limit, key), until);
        }
        self.count.store(blocks.len(), Ordering::Release);
        has_room
    }

    /// Ends a block. Returns whether the client was blocked.
    pub(crate) fn remove(&self, limit: Name, key: &Key<'_>) -> bool {
        let mut blocks = self.lock();
        let until = blocks.remove(&blocked(limit, key));
        self.count.store(blocks.len(), Ordering::Release);
        until.is_some_and(|until| until > super::now())
    }

    /// Returns the time until the block of a client ends.
    pub(crate) fn remaining(&self, limit: Name, key: &Key<'_>) -> Option<Duration> {
        let until = *self.lock().get(&blocked(limit, key))?;
        until
            .checked_duration_since(super::now())
            .filter(|left| !left.is_zero())
    }

    /// Returns whether there are no blocks.
    #[inline]
    pub(crate) fn are_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Returns whether a client is blocked.
    pub(crate) fn has(&self, limit: Name, key: &Key<'_>) -> bool {
        self.remaining(limit, key).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Blocked, Instant>> {
        // A block is written in one step, so a poisoned map is still valid.
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn blocked(limit: Name, key: &Key<'_>) -> Blocked {
    (limit, key.scope(), key.as_bytes().into())
}
