//! Calls in flight.

use core::sync::atomic::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::look_up::{KnownKey, LookUp};
use super::memory::Memory;
use super::record::{KeyCall, Record};
use crate::charge::{Charge, OwnedCharge};
use crate::clock::Clock;
use crate::decision::Decision;

/// A check in flight. If the check is dropped without an answer, the records forget the check.
pub(super) struct CheckInFlight<C: Clock> {
    memory: Arc<Memory<C>>,
    /// The keys before the call was sent.
    keys: SmallVec<[KnownKey; 2]>,
    /// The position in `keys` of each charge's key.
    of: SmallVec<[usize; 4]>,
    number: u64,
    /// The local instant before the call was sent.
    sent: u64,
}

impl<C: Clock> CheckInFlight<C> {
    pub(super) fn begin(memory: &Arc<Memory<C>>, look_up: LookUp<'_>) -> Self {
        let sent = look_up.now;
        let number = memory.calls.fetch_add(1, Ordering::Relaxed);
        for (position, key) in look_up.keys.iter().enumerate() {
            memory.change(key.digest, |record| {
                let charges = look_up.charges_of(position);
                record.begin_call(KeyCall {
                    number,
                    sent,
                    charges: charges.iter().map(OwnedCharge::from).collect(),
                });
            });
        }
        Self {
            memory: Arc::clone(memory),
            keys: look_up.keys,
            of: look_up.of,
            number,
            sent,
        }
    }

    pub(super) fn finish(mut self, decision: &Decision) {
        let memory = &self.memory;
        for (position, key) in self.keys.iter().enumerate() {
            let digest = key.digest;
            let statuses = decision.statuses().iter().zip(&self.of);
            let mut statuses = statuses
                .filter(|(_, of)| **of == position)
                .map(|(status, _)| status);
            let shard = &mut *memory.shard(digest);
            let record = shard.records.get_mut(&digest);
            if let Some(record) = record
                && let Some(call) = record.end_call(self.number)
                && decision.is_allowed()
            {
                let taken: SmallVec<[u64; 4]> = statuses.map(|status| status.taken).collect();
                if !record.admit(&call, decision.at(), &taken) {
                    shard.forget(digest);
                }
                continue;
            }
            let of_key = |part: &&(usize, _)| self.of.get(part.0) == Some(&position);
            let entry = decision.entries().iter().find(of_key);
            if let Some((_, entry)) = entry.filter(|_| shard.epoch == key.epoch) {
                let record = Record {
                    entry: entry.clone(),
                    since: (entry.at(), self.number),
                    sent: self.sent,
                    refuses: statuses.any(|status| status.outcome.is_refusal()),
                    calls: Vec::new(),
                    uncounted: BTreeMap::new(),
                };
                shard.remember(digest, record, memory.shard_capacity);
            }
        }
        self.keys.clear();
    }
}

impl<C: Clock> Drop for CheckInFlight<C> {
    fn drop(&mut self) {
        for key in &self.keys {
            self.memory
                .change(key.digest, |record| record.end_call(self.number));
        }
    }
}

/// A call in flight that may give units back. The cache forgets the keys when the call is sent, and when the call ends.
pub(super) struct ChangeInFlight<C: Clock> {
    memory: Arc<Memory<C>>,
    digests: Vec<u128>,
}

impl<C: Clock> ChangeInFlight<C> {
    pub(super) fn begin(memory: &Arc<Memory<C>>, charges: &[Charge<'_>]) -> Self {
        let digests = charges
            .iter()
            .map(|charge| memory.hasher.digest(charge.key()));
        let change = Self {
            digests: digests.collect(),
            memory: Arc::clone(memory),
        };
        change.forget();
        change
    }

    fn forget(&self) {
        for &digest in &self.digests {
            self.memory.shard(digest).forget(digest);
        }
    }
}

impl<C: Clock> Drop for ChangeInFlight<C> {
    fn drop(&mut self) {
        self.forget();
    }
}
