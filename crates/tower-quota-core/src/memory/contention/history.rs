//! Histories of calls, and whether any order explains them.
//!
//! A history is linearizable if its calls can be put in an order that keeps to what was over before something else began,
//! and in which the model gives each the answer it got. The search is that of Wing and Gong ("Testing and verifying
//! concurrent objects", 1993).

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

/// Subjects in a history, the last of whom is everybody together.
pub(super) const SUBJECTS: usize = 3;
pub(super) const EVERYBODY: usize = SUBJECTS - 1;

const CLIENT: Name = Name::new("client");

/// One limit's part in a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) subject: usize,
    pub(super) limit: &'static str,
    pub(super) quota: Quota,
    pub(super) cost: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) operation: Operation,
    pub(super) wishes: Vec<Wish>,
}

/// What was asked and answered, and when by the ticks of the history.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) ask: Ask,
    pub(super) decision: Decision,
    pub(super) begun: u64,
    pub(super) ended: u64,
}

/// The model's subjects.
pub(super) type Subjects = [Entry; SUBJECTS];

pub(super) fn key(subject: usize) -> Key<'static> {
    if subject == EVERYBODY { Key::EVERYONE } else { Key::number(CLIENT, subject as u64) }
}

impl Ask {
    /// Asks a store.
    pub(super) fn call(&self, store: &MemoryStore, ticks: &AtomicU64) -> Call {
        let keys: [Key<'_>; SUBJECTS] = core::array::from_fn(key);
        let charges = self.charges(&keys);
        let begun = ticks.fetch_add(1, Ordering::SeqCst);
        let Ok(decision) = store.apply(self.operation, &charges).into_inner();
        Call { ask: self.clone(), decision, begun, ended: ticks.fetch_add(1, Ordering::SeqCst) }
    }

    /// What the model answers.
    fn decide(&self, subjects: &mut Subjects, now: Timestamp) -> Decision {
        let keys: [Key<'_>; SUBJECTS] = core::array::from_fn(key);
        let takes_part = |subject: &usize| self.wishes.iter().any(|wish| wish.subject == *subject);
        let named: Vec<usize> = (0..SUBJECTS).filter(takes_part).collect();
        let mut subjects: Vec<&mut Entry> = subjects
            .iter_mut()
            .enumerate()
            .filter_map(|(number, subject)| takes_part(&number).then_some(subject))
            .collect();
        let subject_of = |wish: usize| named.iter().position(|&subject| subject == self.wishes[wish].subject).unwrap();
        decide(self.operation, &self.charges(&keys), now, &mut subjects, subject_of)
    }

    fn charges<'a>(&'a self, keys: &'a [Key<'a>; SUBJECTS]) -> Vec<Charge<'a>> {
        let charge = |wish: &'a Wish| Charge::new(wish.limit, &wish.quota, &keys[wish.subject]).cost(wish.cost);
        self.wishes.iter().map(charge).collect()
    }
}

/// The model's subjects after every order that explains the calls, beginning with any of those before. None: no order does.
pub(super) fn explain(calls: &[Call], before: &[Subjects]) -> Vec<Subjects> {
    let mut search = Search { calls, tried: Vec::new(), after: Vec::new() };
    before.iter().for_each(|subjects| search.go_on(0, subjects));
    search.after
}

struct Search<'a> {
    calls: &'a [Call],
    /// The calls in the order so far, a bit each, and what they have led to.
    tried: Vec<(u32, Subjects)>,
    after: Vec<Subjects>,
}

impl Search<'_> {
    fn go_on(&mut self, done: u32, subjects: &Subjects) {
        let here = (done, subjects.clone());
        if self.tried.contains(&here) {
            return;
        }
        self.tried.push(here);
        let open = |call: &usize| done & 1 << call == 0;
        let mut is_last = true;
        for next in (0..self.calls.len()).filter(open) {
            is_last = false;
            let call = &self.calls[next];
            let comes_first = (0..self.calls.len()).filter(open).all(|other| self.calls[other].ended > call.begun);
            let mut subjects = subjects.clone();
            // The store says which instant it took.
            if comes_first && call.ask.decide(&mut subjects, call.decision.at()) == call.decision {
                self.go_on(done | 1 << next, &subjects);
            }
        }
        if is_last && !self.after.contains(subjects) {
            self.after.push(subjects.clone());
        }
    }
}
