//! The pools of all keys, in shards.

use core::hash::{BuildHasherDefault, Hasher};
use core::ops::DerefMut;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use smallvec::SmallVec;
use tower_quota_core::{Charge, Key, KeyHasher, LimitStatus, Name, Quota, Timestamp};

use crate::lock::locked;
use crate::plan::Plan;
use crate::pool::Pool;
use crate::remembered::{KnownRefusal, Remembered, Uncounted, Version};
use crate::sightings::Sightings;
use crate::stats::LeaseStats;

/// The shards. There are enough that threads rarely wait for the same one.
const SHARDS: usize = 64;
/// The most pools of a key. A service that chooses a quota for each request would need more.
const MOST_POOLS: usize = 16;
/// The sightings from which a key gets a pool.
const SIGHTINGS: u32 = 2;
/// The shortest time between two searches of a full shard for keys that are not used, in microseconds.
const SWEEP_EVERY: u64 = 100_000;

/// The pools of all keys.
#[derive(Debug)]
pub(crate) struct Leases {
    hasher: KeyHasher,
    shards: Box<[Mutex<Shard>]>,
    versions: Box<[Version]>,
    remembered: Remembered,
    sightings: Sightings,
    keys_per_shard: usize,
    serials: AtomicU64,
}

/// The pools of some keys.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    keys: HashMap<u128, Pools, BuildHasherDefault<DigestHasher>>,
    swept_at: u64,
    pub(crate) counts: LeaseStats,
}

/// Takes a digest as its own hash: it is one already, of a secret seed.
#[derive(Debug, Default)]
struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, digest: u128) {
        self.0 = (digest >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The pools of one key. A limit has two while its quota changes.
type Pools = SmallVec<[Pool; 1]>;

impl Leases {
    pub(crate) fn new(keys: usize) -> Self {
        Self {
            hasher: KeyHasher::random(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            versions: (0..SHARDS).map(|_| Version::default()).collect(),
            remembered: Remembered::default(),
            sightings: Sightings::new(),
            keys_per_shard: keys.div_ceil(SHARDS),
            serials: AtomicU64::new(0),
        }
    }

    /// Returns the number of a key, which no client can choose.
    pub(crate) fn digest(&self, key: &Key<'_>) -> u128 {
        self.hasher.digest(key)
    }

    /// Returns the shard of a key for any change. It ends the refusals that threads remember.
    pub(crate) fn shard(&self, digest: u128) -> impl DerefMut<Target = Shard> {
        let shard = self.shard_to_take(digest);
        self.end_refusals(digest);
        shard
    }

    /// Ends the refusals of a shard that threads remember. Called by the holder of the shard.
    pub(crate) fn end_refusals(&self, digest: u128) {
        self.versions[digest as usize % SHARDS].change();
    }

    /// Returns the shard of a key, for changes that give no refused pool units.
    pub(crate) fn shard_to_take(&self, digest: u128) -> impl DerefMut<Target = Shard> {
        locked(&self.shards[digest as usize % SHARDS])
    }

    pub(crate) fn version(&self, digest: u128) -> u64 {
        self.versions[digest as usize % SHARDS].get()
    }

    /// Refuses a charge by a refusal that this thread remembers.
    ///
    /// Otherwise returns the requests that it has refused before, for the pool.
    pub(crate) fn refuse_known(
        &self,
        digest: u128,
        charge: &Charge<'_>,
        now: u64,
        is_counted: bool,
    ) -> Result<(LimitStatus, Timestamp), Uncounted> {
        self.remembered
            .refuse(digest, charge, (now, self.version(digest)), is_counted)
    }

    /// Lets this thread remember a refusal.
    pub(crate) fn remember(&self, refusal: KnownRefusal, now: u64) {
        if let Some(other) = self.remembered.remember(refusal)
            && let Some(pool) = self
                .shard_to_take(other.digest)
                .pool_of(other.digest, other.uncounted.serial)
        {
            pool.note_refused(now, &other.uncounted);
        }
    }

    /// Returns the requests that were refused by what threads remember.
    pub(crate) fn refused(&self) -> u64 {
        self.remembered.refused()
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = impl DerefMut<Target = Shard>> {
        self.shards.iter().map(locked)
    }

    /// Returns the pool of a limit, which is made if its key was seen before and there is room.
    pub(crate) fn open<'s>(
        &self,
        shard: &'s mut Shard,
        digest: u128,
        limit: Name,
        plan: &Arc<Plan>,
        now: u64,
    ) -> Option<&'s mut Pool> {
        if !shard.keys.contains_key(&digest) {
            let is_rare = self.sightings.note(digest, now) < SIGHTINGS;
            if is_rare || shard.keys.len() >= self.keys_per_shard && !shard.sweep(now) {
                return None;
            }
        }
        let pools = shard.keys.entry(digest).or_default();
        let known = pools
            .iter()
            .position(|pool| pool.limit == limit && pool.plan.asked == plan.asked);
        let position = match known {
            Some(position) => position,
            None => {
                shard.counts.units_under_admitted += end_missed(pools.iter_mut(), now);
                pools.retain(|pool| pool.is_live(now));
                if pools.len() >= MOST_POOLS {
                    return None;
                }
                pools.push(Pool::new(
                    limit,
                    Arc::clone(plan),
                    self.serials.fetch_add(1, Ordering::Relaxed),
                ));
                pools.len() - 1
            }
        };
        pools.get_mut(position)
    }
}

impl Shard {
    /// Returns the pool of a limit under this quota.
    pub(crate) fn pool(&mut self, digest: u128, limit: Name, quota: &Quota) -> Option<&mut Pool> {
        let pools = self.keys.get_mut(&digest)?;
        pools
            .iter_mut()
            .find(|pool| pool.limit == limit && pool.plan.asked == *quota)
    }

    /// Returns the pool of this number, unless it was reset or dropped.
    pub(crate) fn pool_of(&mut self, digest: u128, serial: u64) -> Option<&mut Pool> {
        self.keys
            .get_mut(&digest)?
            .iter_mut()
            .find(|pool| pool.serial == serial)
    }

    /// Puts units back into the lease that they were charged with.
    ///
    /// Returns its pool, if the lease goes on.
    pub(crate) fn put_back(
        &mut self,
        (digest, limit): (u128, Name),
        units: u64,
        charged_at: Timestamp,
        now: u64,
    ) -> Option<&mut Pool> {
        let mut pools = self
            .keys
            .get_mut(&digest)?
            .iter_mut()
            .filter(|pool| pool.limit == limit);
        pools.find_map(|pool| pool.grants.put_back(now, units, charged_at).then_some(pool))
    }

    /// Removes the pools of a limit, with all that they hold.
    pub(crate) fn forget(&mut self, digest: u128, limit: Name) {
        if let Some(pools) = self.keys.get_mut(&digest) {
            pools.retain(|pool| pool.limit != limit);
        }
    }

    pub(crate) fn pools(&mut self) -> impl Iterator<Item = &mut Pool> {
        self.keys.values_mut().flatten()
    }

    /// Counts the units that were refused here for nothing to clients who have not asked lately.
    pub(crate) fn end_missed(&mut self, now: u64) {
        self.counts.units_under_admitted += end_missed(self.keys.values_mut().flatten(), now);
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Removes the keys that are not used. Returns whether there is room now.
    #[cold]
    fn sweep(&mut self, now: u64) -> bool {
        if now < self.swept_at.saturating_add(SWEEP_EVERY) {
            return false;
        }
        self.swept_at = now;
        self.end_missed(now);
        let before = self.keys.len();
        self.keys
            .retain(|_, pools| pools.iter().any(|pool| pool.is_live(now)));
        self.keys.len() < before
    }
}

/// Ends the count of what pools have refused for nothing, of those that are not used.
fn end_missed<'p>(pools: impl IntoIterator<Item = &'p mut Pool>, now: u64) -> u64 {
    pools.into_iter().map(|pool| pool.end_missed(now)).sum()
}
