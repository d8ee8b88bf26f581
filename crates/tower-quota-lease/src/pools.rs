//! The table of the pools.

use core::ops::DerefMut;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;
use tower_quota_core::{Key, KeyHasher, Name, Quota, Timestamp};

use crate::plan::Plan;
use crate::pool::Pool;
use crate::stats::LeaseStats;

const SHARDS: usize = 64;
/// The most pools of a key. A service with another quota for each request would fill the memory otherwise.
const MOST_POOLS: usize = 16;
/// The shortest time between two sweeps of a full shard, in microseconds.
const SWEEP_EVERY: u64 = 100_000;

#[derive(Debug)]
pub(crate) struct Pools {
    hasher: KeyHasher,
    shards: Box<[Mutex<Shard>]>,
}

/// The pools of some keys.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    /// The pools by key digest. A limit has two pools while its quota changes.
    keys: HashMap<u128, SmallVec<[Pool; 1]>>,
    most_keys: usize,
    serials: u64,
    swept_at: u64,
    pub(crate) stats: LeaseStats,
}

impl Pools {
    pub(crate) fn new(keys: usize) -> Self {
        let shard = || {
            Mutex::new(Shard {
                most_keys: keys.div_ceil(SHARDS),
                ..Shard::default()
            })
        };
        Self {
            hasher: KeyHasher::random(),
            shards: (0..SHARDS).map(|_| shard()).collect(),
        }
    }

    pub(crate) fn digest(&self, key: &Key<'_>) -> u128 {
        self.hasher.digest(key)
    }

    pub(crate) fn shard(&self, digest: u128) -> impl DerefMut<Target = Shard> {
        locked(&self.shards[digest as usize % SHARDS])
    }

    pub(crate) fn stats(&self, now: u64) -> LeaseStats {
        let mut stats = LeaseStats::default();
        for shard in &self.shards {
            let shard = locked(shard);
            stats.add(&shard.stats);
            stats.keys += shard.keys.len();
            for pool in shard.keys.values().flatten() {
                stats.units_held += pool.grants.units(now);
            }
        }
        stats
    }
}

/// Locks a shard. A panic of another thread leaves the shard usable.
fn locked(shard: &Mutex<Shard>) -> impl DerefMut<Target = Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    /// Returns the pool of a limit with this quota.
    pub(crate) fn pool(&mut self, digest: u128, limit: Name, quota: &Quota) -> Option<&mut Pool> {
        let mut pools = self.keys.get_mut(&digest)?.iter_mut();
        pools.find(|pool| pool.limit == limit && pool.plan.asked == *quota)
    }

    /// Returns the pool with this serial, unless the pool was reset or dropped.
    pub(crate) fn pool_of(&mut self, digest: u128, serial: u64) -> Option<&mut Pool> {
        let mut pools = self.keys.get_mut(&digest)?.iter_mut();
        pools.find(|pool| pool.serial == serial)
    }

    /// Returns the pool of a limit. Makes the pool if there is room.
    pub(crate) fn open(
        &mut self,
        digest: u128,
        limit: Name,
        plan: &Plan,
        now: u64,
    ) -> Option<&mut Pool> {
        if self.pool(digest, limit, &plan.asked).is_none() {
            if !self.keys.contains_key(&digest) && !self.has_room(now) {
                return None;
            }
            let pools = self.keys.entry(digest).or_default();
            pools.retain(|pool| pool.is_live(now));
            if pools.len() == MOST_POOLS {
                return None;
            }
            pools.push(Pool::new(limit, *plan, self.serials));
            self.serials += 1;
        }
        self.pool(digest, limit, &plan.asked)
    }

    fn has_room(&mut self, now: u64) -> bool {
        if self.keys.len() >= self.most_keys && now >= self.swept_at + SWEEP_EVERY {
            self.swept_at = now;
            self.keys
                .retain(|_, pools| pools.iter().any(|pool| pool.is_live(now)));
        }
        self.keys.len() < self.most_keys
    }

    /// Puts units back into their lease. Returns the pool, if the lease still lasts.
    pub(crate) fn put_back(
        &mut self,
        digest: u128,
        limit: Name,
        units: u64,
        charged_at: Timestamp,
        now: u64,
    ) -> Option<&mut Pool> {
        let pools = self.keys.get_mut(&digest)?;
        pools.iter_mut().find_map(|pool| {
            let has_units = pool.limit == limit && pool.grants.put_back(now, units, charged_at);
            has_units.then_some(pool)
        })
    }

    /// Drops the pools of a limit with all their units.
    pub(crate) fn forget(&mut self, digest: u128, limit: Name) {
        if let Some(pools) = self.keys.get_mut(&digest) {
            pools.retain(|pool| pool.limit != limit);
        }
    }
}
