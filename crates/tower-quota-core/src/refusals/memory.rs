//! The table of the records.

use core::sync::atomic::AtomicU64;
use std::collections::HashMap;

use smallvec::SmallVec;

use super::counted::is_counted;
use super::look_up::{KnownKey, LookUp};
use super::record::Record;
use super::stats::RefusalStats;
use crate::charge::{Charge, ChargeMode};
use crate::clock::Clock;
use crate::key_hasher::KeyHasher;
use crate::sync::{Mutex, MutexGuard, locked};

/// The most shards, each behind a lock.
const SHARDS: usize = 256;
/// Records of a shard. An eviction looks at all records of a shard.
const SHARD_RECORDS: usize = 64;
/// The default age of the oldest usable record, in microseconds.
pub(super) const MAX_AGE: u64 = 1_000_000;

pub(super) struct Memory<C> {
    pub(super) clock: C,
    pub(super) hasher: KeyHasher,
    /// The number of the next call.
    pub(super) calls: AtomicU64,
    shards: Box<[Mutex<Shard>]>,
    pub(super) shard_capacity: usize,
}

#[derive(Default)]
pub(super) struct Shard {
    pub(super) records: HashMap<u128, Record>,
    /// Changes when the store may admit more than a record says.
    pub(super) epoch: u64,
    pub(super) stats: RefusalStats,
}

impl Shard {
    /// Forgets a key. Calls in flight will not record the key.
    pub(super) fn forget(&mut self, digest: u128) {
        self.records.remove(&digest);
        self.epoch += 1;
    }

    /// Remembers a record, unless a later record is known.
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

impl<C: Clock> Memory<C> {
    /// Looks up the keys of a request. Forgets a key if the quota of a limit has changed.
    pub(super) fn look_up<'r>(&self, charges: &'r [Charge<'r>]) -> LookUp<'r> {
        let now = self.clock.now().as_micros();
        let mut keys: SmallVec<[KnownKey; 2]> = SmallVec::new();
        let mut of = SmallVec::new();
        for charge in charges {
            let digest = self.hasher.digest(charge.key());
            let known = keys.iter().position(|key| key.digest == digest);
            of.push(known.unwrap_or(keys.len()));
            if known.is_none() {
                let shard = &mut *self.shard(digest);
                let own = charges.iter().filter(|own| own.key() == charge.key());
                let record = shard.records.get(&digest);
                if record.is_some_and(|record| record.has_other_quota(own, now)) {
                    shard.forget(digest);
                }
                let record = shard.records.get(&digest);
                keys.push(KnownKey {
                    digest,
                    epoch: shard.epoch,
                    known: record.and_then(|record| record.known(now)),
                });
            }
        }
        LookUp {
            charges,
            now,
            keys,
            of,
        }
    }

    pub(super) fn new(clock: C, capacity: usize) -> Self {
        let shards = (capacity / SHARD_RECORDS).clamp(1, SHARDS);
        Self {
            clock,
            hasher: KeyHasher::random(),
            calls: AtomicU64::new(0),
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            shard_capacity: capacity.div_ceil(shards),
        }
    }

    pub(super) fn stats(&self) -> RefusalStats {
        let mut sum = RefusalStats::default();
        for shard in &self.shards {
            let stats = locked(shard).stats;
            sum.answered += stats.answered;
            sum.remembered += stats.remembered;
            sum.evicted += stats.evicted;
        }
        sum
    }

    pub(super) fn shard(&self, digest: u128) -> MutexGuard<'_, Shard> {
        let [byte, ..] = digest.to_le_bytes();
        locked(&self.shards[usize::from(byte) % self.shards.len()])
    }

    /// Changes the record of a key.
    pub(super) fn change<R>(
        &self,
        digest: u128,
        change: impl FnOnce(&mut Record) -> R,
    ) -> Option<R> {
        self.shard(digest).records.get_mut(&digest).map(change)
    }

    /// Counts a refusal from memory. The records count at once what the store has to count.
    pub(super) fn count_refusal(&self, look_up: &LookUp<'_>) {
        self.shard(look_up.keys[0].digest).stats.answered += 1;
        if look_up.charges.iter().any(is_counted) {
            for (position, key) in look_up.keys.iter().enumerate() {
                let charges = look_up.charges_of(position);
                self.change(key.digest, |record| {
                    record.count_refusal(&charges, look_up.now)
                });
            }
        }
    }

    /// Takes the refusals that the store has yet to count, as charges of this request.
    pub(super) fn take_uncounted<'r>(&self, look_up: &LookUp<'r>) -> Vec<Charge<'r>> {
        let mut taken = Vec::new();
        for (charge, key) in look_up.charges.iter().zip(&look_up.of) {
            let take = |record: &mut Record| record.uncounted.remove(&charge.name().id());
            let count = self.change(look_up.keys[*key].digest, take).flatten();
            let count = count.unwrap_or(0);
            let is_taken = charge.counts_refusals() || charge.mode() == ChargeMode::Forced;
            if is_taken && count > 0 {
                let cost = charge.units().saturating_mul(count);
                taken.insert(0, charge.without_penalty().cost(cost));
            }
            if charge.penalised_by().is_some() {
                let strike = charge.without_counted_refusals();
                taken.extend((0..count).map(|_| strike).take(Charge::MOST));
            }
        }
        taken.truncate(Charge::MOST);
        taken
    }
}
