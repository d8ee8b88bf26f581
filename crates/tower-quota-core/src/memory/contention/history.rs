//! Records histories of calls, and asks whether the model explains them in any order.
//!
//! The search is by Wing and Gong ("Testing and verifying concurrent objects", 1993).

use std::sync::atomic::{AtomicU64, Ordering};

use crate::charge::{Charge, Operation};
use crate::decide::decide;
use crate::decision::Decision;
use crate::entry::Entry;
use crate::key::Key;
use crate::memory::MemoryStore;
use crate::name::Name;
use crate::quota::Quota;
use crate::store::Store;
use crate::time::Timestamp;

pub(super) const KEYS: usize = 3;
pub(super) const EVERYONE: usize = KEYS - 1;

const CLIENT: Name = Name::new("client");

#[derive(Clone, Copy, Debug)]
pub(super) struct ChargeSpec {
    pub(super) key: usize,
    pub(super) limit: &'static str,
    pub(super) quota: Quota,
    pub(super) cost: u64,
}

#[derive(Clone, Debug)]
pub(super) struct RecordedRequest {
    pub(super) operation: Operation,
    pub(super) charges: Vec<ChargeSpec>,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) request: RecordedRequest,
    pub(super) decision: Decision,
    pub(super) begun: u64,
    pub(super) ended: u64,
}

pub(super) type Entries = [Entry; KEYS];

pub(super) fn key(number: usize) -> Key<'static> {
    if number == EVERYONE {
        Key::EVERYONE
    } else {
        Key::number(CLIENT, number as u64)
    }
}

impl RecordedRequest {
    pub(super) fn call(&self, store: &MemoryStore, ticks: &AtomicU64) -> Call {
        let keys: [Key<'_>; KEYS] = core::array::from_fn(key);
        let charges = self.charges(&keys);
        let begun = ticks.fetch_add(1, Ordering::SeqCst);
        let Ok(decision) = store.apply(self.operation, &charges).into_inner();
        Call {
            request: self.clone(),
            decision,
            begun,
            ended: ticks.fetch_add(1, Ordering::SeqCst),
        }
    }

    fn decide(&self, entries: &mut Entries, now: Timestamp) -> Decision {
        let keys: [Key<'_>; KEYS] = core::array::from_fn(key);
        let takes_part = |key: &usize| self.charges.iter().any(|spec| spec.key == *key);
        let named: Vec<usize> = (0..KEYS).filter(takes_part).collect();
        let mut entries: Vec<&mut Entry> = entries
            .iter_mut()
            .enumerate()
            .filter_map(|(number, entry)| takes_part(&number).then_some(entry))
            .collect();
        let entry_of = |spec: usize| {
            named
                .iter()
                .position(|&key| key == self.charges[spec].key)
                .unwrap()
        };
        decide(
            self.operation,
            &self.charges(&keys),
            now,
            &mut entries,
            entry_of,
        )
    }

    fn charges<'a>(&'a self, keys: &'a [Key<'a>; KEYS]) -> Vec<Charge<'a>> {
        let charge = |spec: &'a ChargeSpec| {
            Charge::new(spec.limit, &spec.quota, &keys[spec.key]).cost(spec.cost)
        };
        self.charges.iter().map(charge).collect()
    }
}

pub(super) fn explain(calls: &[Call], before: &[Entries]) -> Vec<Entries> {
    let mut search = Search {
        calls,
        tried: Vec::new(),
        after: Vec::new(),
    };
    before.iter().for_each(|entries| search.go_on(0, entries));
    search.after
}

struct Search<'a> {
    calls: &'a [Call],
    tried: Vec<(u32, Entries)>,
    after: Vec<Entries>,
}

impl Search<'_> {
    fn go_on(&mut self, done: u32, entries: &Entries) {
        let here = (done, entries.clone());
        if self.tried.contains(&here) {
            return;
        }
        self.tried.push(here);
        let open = |call: &usize| done & 1 << call == 0;
        let mut is_last = true;
        for next in (0..self.calls.len()).filter(open) {
            is_last = false;
            let call = &self.calls[next];
            let comes_first = (0..self.calls.len())
                .filter(open)
                .all(|other| self.calls[other].ended > call.begun);
            let mut entries = entries.clone();
            // The model decides at the instant that the store reports.
            if comes_first && call.request.decide(&mut entries, call.decision.at()) == call.decision
            {
                self.go_on(done | 1 << next, &entries);
            }
        }
        if is_last && !self.after.contains(entries) {
            self.after.push(entries.clone());
        }
    }
}
