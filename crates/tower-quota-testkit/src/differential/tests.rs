//! Tests that the differential test finds mistakes, with a store of bytes that is correct or has a
//! planted mistake.

use std::collections::BTreeMap;
use std::future::{Ready, ready};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tower_quota_core::{
    Charge, Clock, Decision, DecodeError, Entry, Key, Operation, Store, decide,
};

use super::Differential;
use crate::conformance::Capability;
use crate::{ManualClock, block_on};

#[derive(Clone, Copy, PartialEq)]
enum Mistake {
    None,
    ForgetsRefunds,
    StoresWrongInstant,
    SupportsNoPenalties,
}

struct ByteStore {
    clock: ManualClock,
    entries: Mutex<BTreeMap<u128, Vec<u8>>>,
    mistake: Mistake,
}

impl ByteStore {
    fn new(clock: ManualClock, mistake: Mistake) -> Self {
        Self {
            clock,
            entries: Mutex::default(),
            mistake,
        }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<u128, Vec<u8>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stored(&self, key: &Key<'_>) -> Vec<u8> {
        self.entries()
            .get(&digest(key))
            .cloned()
            .unwrap_or_default()
    }

    fn decide(
        &self,
        operation: Operation,
        charges: &[Charge<'_>],
    ) -> Result<Decision, DecodeError> {
        let digests: Vec<u128> = charges.iter().map(|charge| digest(charge.key())).collect();
        let mut named = digests.clone();
        named.sort_unstable();
        named.dedup();
        let mut stored = self.entries();
        let load = |digest| {
            stored
                .get(digest)
                .map_or(Ok(Entry::default()), |bytes| Entry::decode(bytes))
        };
        let before = named.iter().map(load).collect::<Result<Vec<Entry>, _>>()?;
        let mut after = before.clone();
        let mut entries: Vec<&mut Entry> = after.iter_mut().collect();
        let entry_of = |charge: usize| named.binary_search(&digests[charge]).unwrap_or_default();
        let decision = decide(operation, charges, self.clock.now(), &mut entries, entry_of);
        for ((digest, before), after) in named.into_iter().zip(before).zip(after) {
            if after.is_empty() {
                stored.remove(&digest);
            } else if after != before {
                let mut bytes = after.encode();
                if self.mistake == Mistake::StoresWrongInstant {
                    bytes[1] ^= 1;
                }
                stored.insert(digest, bytes);
            }
        }
        Ok(decision)
    }
}

impl Store for ByteStore {
    type Error = DecodeError;
    type Future = Ready<Result<Decision, DecodeError>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let costless: Vec<Charge<'_>> = charges.iter().map(|charge| charge.cost(0)).collect();
        ready(match (self.mistake, operation) {
            (Mistake::ForgetsRefunds, Operation::Refund { .. }) => {
                self.decide(operation, &costless)
            }
            (Mistake::SupportsNoPenalties, _) => {
                assert!(
                    charges.iter().all(|charge| charge.penalised_by().is_none()),
                    "a penalty"
                );
                self.decide(operation, charges)
            }
            _ => self.decide(operation, charges),
        })
    }
}

fn digest(key: &Key<'_>) -> u128 {
    key.digest(&[0; 16])
}

fn run(differential: Differential, mistake: Mistake) {
    differential.run(|trace| {
        let store = ByteStore::new(trace.clock(), mistake);
        block_on(trace.compare_bytes(&store, async |key: &Key<'_>| store.stored(key)))
    });
}

#[test]
fn sound_store_stores_the_model_bytes() {
    run(Differential::new(), Mistake::None);
}

#[test]
fn keeping_store_agrees_after_clock_rewind() {
    run(Differential::new().forgets_nothing(), Mistake::None);
    run(Differential::new().forgets_nothing().plain(), Mistake::None);
}

#[test]
fn sound_store_agrees_in_bursts() {
    run(Differential::new().cases(50).bursts(), Mistake::None);
}

#[test]
fn lacking_capability_is_left_out() {
    run(
        Differential::new().lacks(&[Capability::Penalties]),
        Mistake::SupportsNoPenalties,
    );
}

#[test]
#[should_panic(expected = "the model says")]
fn store_without_refunds_is_found() {
    let differential = Differential::new();
    differential.run(|trace| {
        let store = ByteStore::new(trace.clock(), Mistake::ForgetsRefunds);
        block_on(trace.compare(&store))
    });
}

#[test]
#[should_panic(expected = "is stored as")]
fn wrong_stored_instant_is_found() {
    run(Differential::new(), Mistake::StoresWrongInstant);
}
