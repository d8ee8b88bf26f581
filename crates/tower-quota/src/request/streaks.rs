use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tower_quota_core::{Key, Name};

/// When more clients are refused, all are forgotten.
const MAX_CLIENTS: usize = 65_536;

#[derive(Default)]
pub(crate) struct Streaks {
    /// False while no client is refused, so that admitted requests take no lock.
    any: AtomicBool,
    lengths: Mutex<HashMap<u64, u32>>,
    hasher: RandomState,
}

impl Streaks {
    pub(crate) fn refused(&self, limit: Name, key: &Key<'_>) -> u32 {
        let client = self.number(limit, key);
        let mut lengths = self.lock();
        if lengths.len() >= MAX_CLIENTS && !lengths.contains_key(&client) {
            lengths.clear();
        }
        let length = lengths.entry(client).or_default();
        *length = length.saturating_add(1);
        self.any.store(true, Ordering::Relaxed);
        *length
    }

    pub(crate) fn admitted(&self, keys: &[(Name, Key<'static>)]) {
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        let mut lengths = self.lock();
        for (limit, key) in keys {
            lengths.remove(&self.number(*limit, key));
        }
        self.any.store(!lengths.is_empty(), Ordering::Relaxed);
    }

    fn number(&self, limit: Name, key: &Key<'_>) -> u64 {
        self.hasher
            .hash_one((limit.id(), key.scope().id(), key.as_bytes()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, u32>> {
        // Each length is written in a single step, so a poisoned map is still valid.
        self.lengths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
