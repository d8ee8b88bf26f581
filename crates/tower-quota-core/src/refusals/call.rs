//! A call of the store under way.

use std::sync::Arc;

use smallvec::SmallVec;

use super::memory::Memory;
use super::uncounted::{Uncounted, carried};
use super::view::Views;
use crate::charge::{Charge, Operation};
use crate::clock::Clock;
use crate::decision::Decision;
use crate::outcome::Outcome;

/// A call of the store under way. Its end is noted when it is answered, fails or is dropped.
pub(super) struct TrackedCall<C: Clock> {
    memory: Arc<Memory<C>>,
    views: Views,
    /// The generation of each limit, as the call has seen it.
    generations: SmallVec<[u32; 4]>,
    uncounted: SmallVec<[Uncounted; 4]>,
    sent: u64,
    /// Says whether it may give units back.
    changes: bool,
    is_over: bool,
}

impl<C: Clock> TrackedCall<C> {
    /// Notes a call that is about to be sent.
    pub(super) fn begin(memory: &Arc<Memory<C>>, views: Views, operation: Operation) -> Self {
        let changes = matches!(operation, Operation::Charge | Operation::Refund { .. } | Operation::Reset);
        let (sent, now) = (memory.sending(), memory.now());
        let (generations, uncounted) = views.iter().map(|view| memory.begin(view, changes, now)).unzip();
        Self { memory: Arc::clone(memory), views, generations, uncounted, sent, changes, is_over: false }
    }

    /// Returns the charges that make the store count what was refused in this process.
    pub(super) fn uncounted<'a>(&self, charges: &[Charge<'a>]) -> Vec<Charge<'a>> {
        carried(&self.uncounted, charges)
    }

    /// Records the answer.
    pub(super) fn record(mut self, decision: &Decision) {
        if self.changes {
            return;
        }
        self.is_over = true;
        let is_refused = matches!(decision.outcome(), Outcome::Refuse(_));
        for ((view, generation), status) in self.views.iter().zip(&self.generations).zip(decision.statuses()) {
            self.memory.end_with(view, *generation, status, decision.at(), self.sent, is_refused);
        }
    }
}

impl<C: Clock> Drop for TrackedCall<C> {
    fn drop(&mut self) {
        if !self.is_over {
            for (view, generation) in self.views.iter().zip(&self.generations) {
                self.memory.end(view, self.changes, *generation);
            }
        }
    }
}
