use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tower_quota_core::{Clock, KeyHasher, Name, Quota, Timestamp};

use crate::answer::micros;
use crate::options::LeaseOptions;
use crate::plan::LeasePlan;
use crate::pool::Pool;
use crate::stats::LeaseStats;

const SHARDS: usize = 64;
/// The maximum number of pools of a key. A service with another quota for each request would
/// otherwise fill the memory.
const MOST_POOLS: usize = 16;

pub(crate) struct Pools {
    clock: Box<dyn Clock>,
    pub(crate) longest: u64,
    pub(crate) hasher: KeyHasher,
    shards: Box<[Mutex<Shard>]>,
    keys_per_shard: usize,
}

#[derive(Default)]
pub(crate) struct Shard {
    /// The pools of each key. A limit has two pools while its quota changes.
    keys: HashMap<u128, Vec<Pool>>,
    serials: u64,
    pub(crate) stats: LeaseStats,
}

impl Pools {
    pub(crate) fn new(options: LeaseOptions, hasher: KeyHasher, clock: impl Clock) -> Self {
        Self {
            clock: Box::new(clock),
            longest: micros(options.longest),
            hasher,
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            keys_per_shard: options.keys.div_ceil(SHARDS),
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.now().as_micros()
    }

    pub(crate) fn shard(&self, digest: u128) -> MutexGuard<'_, Shard> {
        locked(&self.shards[digest as usize % SHARDS])
    }

    pub(crate) fn open(&self, digest: u128, limit: Name, plan: &LeasePlan, now: u64) {
        let shard = &mut *self.shard(digest);
        if shard.pool(digest, limit, &plan.asked).is_some() {
            return;
        }
        if shard.keys.len() >= self.keys_per_shard {
            shard.keys.retain(|_, pools| {
                pools.retain(|pool| pool.is_live(now));
                !pools.is_empty()
            });
        }
        if shard.keys.len() < self.keys_per_shard || shard.keys.contains_key(&digest) {
            let pools = shard.keys.entry(digest).or_default();
            pools.retain(|pool| pool.is_live(now));
            if pools.len() < MOST_POOLS {
                pools.push(Pool::new(limit, *plan, shard.serials));
                shard.serials += 1;
            }
        }
    }

    pub(crate) fn stats(&self) -> LeaseStats {
        let now = self.now();
        let mut sum = LeaseStats::default();
        for shard in &self.shards {
            let shard = locked(shard);
            sum.add(&shard.stats);
            sum.keys += shard.keys.len();
            for pool in shard.keys.values().flatten() {
                sum.units_held += pool.grants.units(now);
            }
        }
        sum
    }
}

/// Locks a shard, even after a panic of another thread.
fn locked(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    pub(crate) fn pool(&mut self, digest: u128, limit: Name, quota: &Quota) -> Option<&mut Pool> {
        let mut pools = self.keys.get_mut(&digest)?.iter_mut();
        pools.find(|pool| pool.limit == limit && pool.plan.asked == *quota)
    }

    pub(crate) fn pool_of(&mut self, digest: u128, serial: u64) -> Option<&mut Pool> {
        let mut pools = self.keys.get_mut(&digest)?.iter_mut();
        pools.find(|pool| pool.serial == serial)
    }

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

    pub(crate) fn forget(&mut self, digest: u128, limit: Name) {
        if let Some(pools) = self.keys.get_mut(&digest) {
            pools.retain(|pool| pool.limit != limit);
        }
    }
}
