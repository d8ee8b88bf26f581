//! What there is to say on a response.

use std::sync::Arc;

use http::Response;
use tower_quota_core::{Decision, Store};

use super::answer::Answer;
use super::gate::Gate;
use super::verdict::Case;
use crate::answer::Brief;
use crate::degraded::Degraded;

/// What there is to say on the response to an admitted request, once.
pub(super) enum Told<S> {
    Nothing,
    Brief(Brief),
    /// Boxed: the future of every request has room for it.
    Report(Box<Report<S>>),
}

/// All that may have to be said.
pub(super) struct Report<S> {
    gate: Arc<Gate<S>>,
    /// None where no limit counts while the store is sick.
    decision: Option<Decision>,
    case: Case,
}

impl<S: Store> Told<S> {
    /// What responses are told of an answer.
    pub(super) fn of(gate: &Arc<Gate<S>>, answer: Answer<S>, case: Case) -> Self {
        if !gate.reports(&answer, &case) {
            return Self::Nothing;
        }
        Self::Report(Box::new(Report { gate: Arc::clone(gate), decision: answer.ok(), case }))
    }

    /// Says it on the response.
    pub(super) fn write<B>(self, response: &mut Response<B>) {
        match self {
            Self::Nothing => {}
            Self::Brief(brief) => brief.write(response.headers_mut()),
            Self::Report(mut report) => report.write(response),
        }
    }
}

impl<S: Store> Report<S> {
    fn write<B>(&mut self, response: &mut Response<B>) {
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
    /// Whether responses are told anything of an answer.
    fn reports(&self, answer: &Answer<S>, case: &Case) -> bool {
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
