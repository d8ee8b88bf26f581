//! What there is to say on a response.

use std::sync::Arc;

use http::Response;
use tower_quota_core::{Decision, Store};

use super::answer::Answer;
use super::gate::Gate;
use super::verdict::Case;
use crate::degraded::Degraded;

/// What there is to say on the response to an admitted request, once.
pub(super) enum Told<S> {
    Nothing,
    /// Boxed: the future of every request has room for it.
    Report(Box<Report<S>>),
}

/// All that may have to be said.
pub(super) struct Report<S> {
    gate: Arc<Gate<S>>,
    case: Case,
}

impl<S: Store> Told<S> {
    /// What responses are told of an answer.
    pub(super) fn of(gate: &Arc<Gate<S>>, answer: Answer<S>, mut case: Case) -> Self {
        if !gate.reports(&answer, &case) {
            return Self::Nothing;
        }
        case.report.decision = answer.ok();
        Self::Report(Box::new(Report { gate: Arc::clone(gate), case }))
    }

    /// Says it on the response.
    pub(super) fn write<B>(self, response: &mut Response<B>) {
        match self {
            Self::Nothing => {}
            Self::Report(mut report) => report.write(response),
        }
    }
}

impl<S: Store> Report<S> {
    fn write<B>(&mut self, response: &mut Response<B>) {
        self.gate.responses.admitted(&self.case.report, response.headers_mut());
        match self.case.report.decision.take() {
            Some(mut decision) => self.gate.mark(&mut decision, &self.case, response),
            None => _ = response.extensions_mut().insert(Degraded),
        }
    }
}

impl<S: Store> Gate<S> {
    /// Whether responses are told anything of an answer.
    fn reports(&self, answer: &Answer<S>, case: &Case) -> bool {
        answer.is_err() || case.is_local() || self.attaches_decisions || !self.responses.is_silent()
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
