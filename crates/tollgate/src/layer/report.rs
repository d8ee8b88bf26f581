//! What there is to say on a response.

use std::sync::Arc;

use http::Response;
use tollgate_core::{Decision, Store};

use super::answer::Answer;
use super::gate::Gate;
use super::verdict::Case;
use crate::degraded::Degraded;

/// What there is to say on the response to an admitted request.
pub(super) struct Report<S> {
    gate: Arc<Gate<S>>,
    /// None where no limit counts while the store is sick.
    decision: Option<Decision>,
    case: Case,
}

impl<S: Store> Report<S> {
    /// What responses are told of an answer.
    #[inline]
    pub(super) fn of(gate: &Arc<Gate<S>>, answer: Answer<S>, case: Case) -> Self {
        Self { gate: Arc::clone(gate), decision: answer.ok(), case }
    }

    /// Writes it on the response, once.
    pub(super) fn write<B>(&mut self, response: &mut Response<B>) {
        match &mut self.decision {
            Some(decision) => self.gate.report(decision, &self.case, response),
            None => {
                if !self.case.particulars.only_shadows {
                    self.gate.answers.fields.write_uncounted(response.headers_mut());
                }
                response.extensions_mut().insert(Degraded);
            }
        }
    }
}

impl<S: Store> Gate<S> {
    /// Whether responses are told anything of an answer. It is asked before a [`Report`] is made: even one that is not
    /// there takes as long to move.
    #[inline]
    pub(super) fn reports(&self, answer: &Answer<S>, case: &Case) -> bool {
        answer.is_err() || case.is_local() || self.attaches_decisions || !self.answers.is_silent()
    }

    /// Writes on a response what was decided about its request.
    fn report<B>(&self, decision: &mut Decision, case: &Case, response: &mut Response<B>) {
        self.answers.write(decision, &case.particulars, case.by, response.headers_mut());
        self.mark(decision, case, response);
    }

    /// Leaves with a response what is not for clients.
    pub(super) fn mark<B>(&self, decision: &mut Decision, case: &Case, response: &mut Response<B>) {
        if case.is_local() {
            response.extensions_mut().insert(Degraded);
        }
        if self.attaches_decisions {
            attach(decision, case, response);
        }
    }
}

/// Leaves the decision with the response: the original, which can be refunded, unless the store has taken nothing that it
/// could give back. Whoever logs a refusal wants to know whose it was: that of an inner limiter stays.
fn attach<B>(decision: &mut Decision, case: &Case, response: &mut Response<B>) {
    if response.extensions().get().is_none_or(Decision::is_allowed) {
        let mut attached = decision.clone();
        if !case.is_local() {
            core::mem::swap(&mut attached, decision);
        }
        response.extensions_mut().insert(attached);
    }
}
