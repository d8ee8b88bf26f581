use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tower_quota_core::{Key, Name, Timestamp};

/// The maximum number of counted clients. One more client resets all counts.
const MAX_CLIENTS: usize = 65_536;
/// The time between resets of all counts. Otherwise an absent client would cost each admission a
/// lock.
const FORGET: Duration = Duration::from_secs(300);

#[derive(Default)]
pub(crate) struct Streaks {
    /// Whether any client has refusals. If not, admitted requests take no lock.
    any: AtomicBool,
    lengths: Mutex<Lengths>,
    hasher: RandomState,
}

#[derive(Default)]
struct Lengths {
    began: Timestamp,
    of: HashMap<u64, u32>,
}

impl Streaks {
    pub(crate) fn refused(&self, limit: Name, key: &Key<'_>, now: Timestamp) -> u32 {
        let mut lengths = self.lock(now);
        let length = lengths.of.entry(self.number(limit, key)).or_default();
        *length = length.saturating_add(1);
        self.any.store(true, Ordering::Relaxed);
        *length
    }

    pub(crate) fn admitted(&self, keys: &[(Name, Key<'static>)], now: impl FnOnce() -> Timestamp) {
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        let mut lengths = self.lock(now());
        for (limit, key) in keys {
            lengths.of.remove(&self.number(*limit, key));
        }
        self.any.store(!lengths.of.is_empty(), Ordering::Relaxed);
    }

    fn number(&self, limit: Name, key: &Key<'_>) -> u64 {
        self.hasher
            .hash_one((limit.id(), key.scope().id(), key.as_bytes()))
    }

    fn lock(&self, now: Timestamp) -> MutexGuard<'_, Lengths> {
        // Each change is a single step, so the map is valid even if a thread panicked.
        let mut lengths = self.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        if lengths.of.len() >= MAX_CLIENTS || now.since(lengths.began) >= FORGET {
            lengths.of.clear();
            lengths.began = now;
        }
        lengths
    }
}
