//! Keeps the records in a table.

use core::sync::atomic::AtomicU64;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, MutexGuard};

use smallvec::{SmallVec, smallvec};

use super::digest_hasher::DigestHasher;
use super::look_up::{KnownKey, LookUp};
use super::record::{Record, is_counted};
use super::stats::RefusalStats;
use crate::charge::Charge;
use crate::clock::Clock;
use crate::key_hasher::KeyHasher;
use crate::sync::Lock;

const SHARDS: usize = 256;
const SHARD_RECORDS: usize = 64;
pub(super) const MAX_AGE: u64 = 1_000_000;

pub(super) struct Memory {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) hasher: KeyHasher,
    pub(super) calls: AtomicU64,
    shards: Box<[Lock<Shard>]>,
    pub(super) capacity: usize,
    pub(super) shard_capacity: usize,
}

#[derive(Default)]
pub(super) struct Shard {
    pub(super) records: HashMap<u128, Record, BuildHasherDefault<DigestHasher>>,
    /// A number that changes when the store may admit more than a record says.
    pub(super) epoch: u64,
    pub(super) stats: RefusalStats,
}

impl Shard {
    pub(super) fn forget(&mut self, digest: u128) {
        self.records.remove(&digest);
        self.epoch += 1;
    }

    pub(super) fn remember(&mut self, digest: u128, mut record: Record, capacity: usize) {
        if let Some(known) = self.records.get_mut(&digest) {
            if known.since > record.since {
                return;
            }
            record.calls = core::mem::take(&mut known.calls);
            record.uncounted = core::mem::take(&mut known.uncounted);
        } else if self.records.len() >= capacity {
            self.evict(record.sent);
        }
        self.stats.remembered += 1;
        self.records.insert(digest, record);
    }

    /// Evicts the record that is of use for the shortest time. Among old records, evicts the record that ends first.
    fn evict(&mut self, now: u64) {
        let rank = |(_, record): &(&u128, &Record)| {
            let ends_at = record.ends_at();
            (ends_at.min(record.sent + MAX_AGE), ends_at)
        };
        if let Some((&digest, record)) = self.records.iter().min_by_key(rank) {
            self.stats.evicted += u64::from(record.ends_at() > now);
            self.records.remove(&digest);
        }
    }
}

impl Memory {
    pub(super) fn new(clock: Arc<dyn Clock>, hasher: KeyHasher, capacity: usize) -> Self {
        let shards = (capacity / SHARD_RECORDS).clamp(1, SHARDS);
        Self {
            clock,
            hasher,
            calls: AtomicU64::new(0),
            shards: (0..shards).map(|_| Lock::default()).collect(),
            capacity,
            shard_capacity: capacity.div_ceil(shards),
        }
    }

    pub(super) fn stats(&self) -> RefusalStats {
        let mut sum = RefusalStats::default();
        for shard in &self.shards {
            let stats = shard.lock().stats;
            sum.answered += stats.answered;
            sum.remembered += stats.remembered;
            sum.evicted += stats.evicted;
        }
        sum
    }

    pub(super) fn shard(&self, digest: u128) -> MutexGuard<'_, Shard> {
        let bits = (digest & 0xffff_ffff) as u64;
        let shard = (bits * self.shards.len() as u64) >> 32;
        self.shards[shard as usize].lock()
    }

    pub(super) fn change<R>(
        &self,
        digest: u128,
        change: impl FnOnce(&mut Record) -> R,
    ) -> Option<R> {
        self.shard(digest).records.get_mut(&digest).map(change)
    }

    pub(super) fn forget(&self, digests: &[u128]) {
        for &digest in digests {
            self.shard(digest).forget(digest);
        }
    }

    pub(super) fn look_up<'r>(&self, charges: &'r [Charge<'r>]) -> LookUp<'r> {
        let now = self.clock.now().as_micros();
        let mut keys: SmallVec<[KnownKey; 2]> = SmallVec::new();
        for (position, charge) in charges.iter().enumerate() {
            let digest = self.hasher.digest(charge.key());
            match keys.iter_mut().find(|key| key.digest == digest) {
                Some(key) => key.positions.push(position),
                None => keys.push(KnownKey {
                    digest,
                    positions: smallvec![position],
                    epoch: 0,
                    known: None,
                }),
            }
        }
        for key in &mut keys {
            let shard = &mut *self.shard(key.digest);
            if let Some(record) = shard.records.get(&key.digest) {
                if record.is_expired(now) {
                    // A later record would take over the refusals that the store has not counted.
                    shard.records.remove(&key.digest);
                } else if record.has_other_quota(&key.charges(charges), now) {
                    shard.forget(key.digest);
                } else {
                    key.known = record.known(now);
                }
            }
            key.epoch = shard.epoch;
        }
        LookUp { charges, now, keys }
    }

    pub(super) fn count_refusal(&self, look_up: &LookUp<'_>) {
        self.shard(look_up.keys[0].digest).stats.answered += 1;
        if look_up.charges.iter().any(is_counted) {
            for key in &look_up.keys {
                let charges = key.charges(look_up.charges);
                self.change(key.digest, |record| {
                    record.count_refusal(&charges, look_up.now)
                });
            }
        }
    }

    pub(super) fn take_uncounted<'r>(&self, look_up: &LookUp<'r>) -> Vec<Charge<'r>> {
        let mut taken = Vec::new();
        for key in look_up.keys.iter().filter(|key| key.known.is_some()) {
            for charge in key.charges(look_up.charges) {
                let take = |record: &mut Record| record.uncounted.remove(&charge.name().id());
                let count = self.change(key.digest, take).flatten().unwrap_or(0);
                if count > 0 {
                    // The store ignores this charge if the limit does not count refusals.
                    let cost = charge.units().saturating_mul(count);
                    taken.insert(0, charge.without_penalty().cost(cost));
                }
                if charge.penalised_by().is_some() {
                    let strike = charge.without_counted_refusals();
                    taken.extend((0..count).map(|_| strike).take(Charge::MOST));
                }
            }
        }
        taken.truncate(Charge::MOST);
        taken
    }
}
