use core::time::Duration;
use std::collections::HashMap;
use std::time::Instant;

use arc_swap::ArcSwap;
use tower_quota_core::{Key, Name};

use crate::observe::now;

const MAX_BLOCKS: usize = 100_000;

type Ends = HashMap<Name, HashMap<Key<'static>, Instant>>;

/// The blocked clients. A change copies the map, so requests read it without a lock.
#[derive(Default)]
pub(crate) struct Blocks {
    ends: ArcSwap<Ends>,
}

impl Blocks {
    /// Returns `false` above the maximum.
    pub(crate) fn insert(&self, limit: Name, key: &Key<'_>, length: Duration) -> bool {
        let now = now();
        // `Instant` cannot hold the end, so block for a century.
        let until = now
            .checked_add(length)
            .unwrap_or(now + Duration::from_secs(3_155_760_000));
        let mut has_room = false;
        self.ends.rcu(|ends| {
            let mut ends = Ends::clone(ends);
            if count(&ends) >= MAX_BLOCKS {
                for keys in ends.values_mut() {
                    keys.retain(|_, until| *until > now);
                }
            }
            has_room = count(&ends) < MAX_BLOCKS;
            if has_room {
                let keys = ends.entry(limit).or_default();
                keys.insert(key.to_static(), until);
            }
            ends
        });
        has_room
    }

    pub(crate) fn remove(&self, limit: Name, key: &Key<'_>) -> bool {
        let was_blocked = self.has(limit, key);
        self.ends.rcu(|ends| {
            let mut ends = Ends::clone(ends);
            if let Some(keys) = ends.get_mut(&limit) {
                keys.remove(&key.to_static());
            }
            ends
        });
        was_blocked
    }

    pub(crate) fn remaining(&self, limit: Name, key: &Key<'_>) -> Option<Duration> {
        let ends = self.ends.load();
        let until = *ends.get(&limit)?.get(key)?;
        until
            .checked_duration_since(now())
            .filter(|left| !left.is_zero())
    }

    pub(crate) fn has(&self, limit: Name, key: &Key<'_>) -> bool {
        self.remaining(limit, key).is_some()
    }
}

fn count(ends: &Ends) -> usize {
    ends.values().map(HashMap::len).sum()
}
