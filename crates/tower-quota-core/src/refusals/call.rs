//! A call of the store under way.

use std::sync::Arc;

use smallvec::SmallVec;

use super::bucket::LimitAnswer;
use super::entry::KnownLimit;
use super::memory::Memory;
use super::uncounted::{Uncounted, carried};
use super::view::Views;
use crate::charge::{Charge, Operation};
use crate::clock::Clock;
use crate::decision::Decision;

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
        let changes = matches!(
            operation,
            Operation::Charge | Operation::Refund { .. } | Operation::Reset
        );
        // The clock's own instant, which may be earlier than what other threads have read.
        let (sent, now) = (memory.clock.now().as_micros(), memory.now());
        let (generations, uncounted) = views
            .iter()
            .map(|view| memory.begin(view, changes, now))
            .unzip();
        Self {
            memory: Arc::clone(memory),
            views,
            generations,
            uncounted,
            sent,
            changes,
            is_over: false,
        }
    }

    /// Returns the charges that make the store count what was refused in this process.
    pub(super) fn uncounted<'a>(&self, charges: &[Charge<'a>]) -> Vec<Charge<'a>> {
        carried(&self.uncounted, charges)
    }

    /// Records the answer.
    pub(super) fn record(mut self, decision: &Decision) {
        // A cache inside reports the limits that it knows. Which ones these are, their number does not say.
        if self.changes || decision.statuses().len() != self.views.len() {
            return;
        }
        self.is_over = true;
        let limits = self.views.iter().zip(decision.statuses());
        let limits =
            limits.map(|(view, status)| KnownLimit::new(view, status, decision, self.sent));
        let limits: SmallVec<[KnownLimit; 4]> = limits.collect();
        // If one refuses, all limits of the request are remembered, so that the next answer can report them.
        let is_kept = self.memory.remembers_statuses()
            || limits.iter().any(|limit| limit.is_refusal_at(self.sent));
        let answers = limits.into_iter().zip(decision.statuses());
        for ((view, generation), (limit, status)) in
            self.views.iter().zip(&self.generations).zip(answers)
        {
            let answer = LimitAnswer {
                limit,
                outcome: status.outcome,
                is_kept,
            };
            self.memory.end(view, false, *generation, Some(answer));
        }
    }
}

impl<C: Clock> Drop for TrackedCall<C> {
    fn drop(&mut self) {
        if !self.is_over {
            for (view, generation) in self.views.iter().zip(&self.generations) {
                self.memory.end(view, self.changes, *generation, None);
            }
        }
    }
}
