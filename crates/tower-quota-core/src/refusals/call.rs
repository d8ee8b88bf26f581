//! Tracks calls in flight.

use core::sync::atomic::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::look_up::{KnownKey, LookUp};
use super::memory::Memory;
use super::record::{KeyCall, Record};
use crate::charge::OwnedCharge;
use crate::decision::Decision;

pub(super) struct CheckInFlight {
    memory: Arc<Memory>,
    keys: SmallVec<[KnownKey; 2]>,
    number: u64,
    sent: u64,
}

impl CheckInFlight {
    pub(super) fn begin(memory: &Arc<Memory>, look_up: LookUp<'_>, is_admitted: bool) -> Self {
        let number = memory.calls.fetch_add(1, Ordering::Relaxed);
        for key in look_up.keys.iter().filter(|key| key.known.is_some()) {
            memory.change(key.digest, |record| {
                let charges = key.charges(look_up.charges);
                let charges = charges.iter().filter(|_| is_admitted);
                record.begin_call(KeyCall {
                    number,
                    sent: look_up.now,
                    charges: charges.map(OwnedCharge::from).collect(),
                });
            });
        }
        Self {
            memory: Arc::clone(memory),
            keys: look_up.keys,
            number,
            sent: look_up.now,
        }
    }

    pub(super) fn finish(mut self, decision: &Decision) {
        for key in core::mem::take(&mut self.keys) {
            if key.known.is_none() && decision.is_allowed() {
                continue;
            }
            let shard = &mut *self.memory.shard(key.digest);
            let record = shard.records.get_mut(&key.digest);
            let call = record.and_then(|record| Some((record.end_call(self.number)?, record)));
            let statuses = key.positions.iter();
            let mut statuses = statuses.filter_map(|&position| decision.statuses().get(position));
            if decision.is_allowed() {
                let taken = statuses.map(|status| status.taken);
                if let Some((call, record)) = call
                    && !record.admit(&call, decision.at(), taken)
                {
                    shard.forget(key.digest);
                }
                continue;
            }
            let mut entries = decision.entries().iter();
            let entry = entries.find(|(position, _)| key.positions.contains(position));
            if let Some((_, entry)) = entry.filter(|_| shard.epoch == key.epoch) {
                let record = Record {
                    entry: entry.clone(),
                    since: (entry.at(), self.number),
                    sent: self.sent,
                    refuses: statuses.any(|status| status.outcome.is_refusal()),
                    calls: Vec::new(),
                    uncounted: BTreeMap::new(),
                };
                shard.remember(key.digest, record, self.memory.shard_capacity);
            }
        }
    }
}

impl Drop for CheckInFlight {
    fn drop(&mut self) {
        for key in self.keys.iter().filter(|key| key.known.is_some()) {
            self.memory
                .change(key.digest, |record| record.end_call(self.number));
        }
    }
}
