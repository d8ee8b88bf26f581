//! The decisions of the layer, apart from the polling: what to ask, what an answer means, what a response gets.

use core::error::Error;
use core::fmt;
use std::sync::Arc;

use http::{Request, Response};
use tollgate_core::{Decision, Store};

use super::local::Local;
use super::pending::Pending;
use super::turn::Line;
use super::verdict::{Grounds, Ruling, Verdict};
use crate::answer::{Answers, Particulars, Reason};
use crate::decided::Decided;
use crate::degraded::Degraded;
use crate::head::RequestHead;
use crate::plan::{Asked, Entry, Overrides, Plan};
use crate::settle::{Account, Counted, Ledger, Till};

/// What a layer and all its services share.
pub(super) struct Gate<S> {
    pub(super) store: Arc<S>,
    pub(super) plan: Arc<Plan>,
    pub(super) local: Arc<Local>,
    pub(super) answers: Arc<Answers>,
    pub(super) on_store_error: Arc<OnStoreError>,
    pub(super) on_decision: Option<Arc<OnDecision>>,
    pub(super) line: Arc<Line>,
}

/// Is told of everything that the store failed to do.
pub(super) type OnStoreError = dyn Fn(&(dyn Error + 'static)) + Send + Sync;

/// Is told of everything that is decided.
pub(super) type OnDecision = dyn Fn(&Decided<'_>) + Send + Sync;

impl<S: Store> Gate<S> {
    /// What has to come before the store is asked about a request.
    pub(super) fn enter<B>(&self, request: &Request<B>) -> Entry {
        self.plan.enter(&RequestHead::of(request))
    }

    /// Asks the store about a request.
    pub(super) fn ask<B>(self: &Arc<Self>, request: &Request<B>) -> Asked<Pending<S>> {
        self.plan.ask(&RequestHead::of(request), |charges| {
            Pending::new(self, self.store.check(charges), self.plan.ledger(charges))
        })
    }

    /// What the store's answer means for a request.
    pub(super) fn judge<B>(
        self: &Arc<Self>,
        answer: Result<Decision, S::Error>,
        ledger: Option<Ledger>,
        overrides: Overrides,
        request: &mut Request<B>,
    ) -> Verdict {
        match answer {
            Ok(decision) => {
                self.local.answered();
                let particulars = self.particulars(overrides, request);
                self.decided(Ruling { decision, particulars, by: Counted::Shared }, ledger, request)
            }
            Err(error) => {
                (self.on_store_error)(&error);
                self.fall_back(&error, request)
            }
        }
    }

    /// What the answer to a request is told beside the store's decision.
    fn particulars<B>(&self, overrides: Overrides, request: &Request<B>) -> Particulars {
        let partitions = match &self.answers.partitions {
            Some(partitions) => self.plan.each_key(&RequestHead::of(request), |key| partitions.of(key)),
            None => Box::default(),
        };
        Particulars { overrides, partitions, ..Particulars::default() }
    }

    /// What a ruling means for a request.
    pub(super) fn decided<B>(
        self: &Arc<Self>,
        mut ruling: Ruling,
        ledger: Option<Ledger>,
        request: &mut Request<B>,
    ) -> Verdict {
        let Ruling { decision, by, .. } = &ruling;
        if !decision.is_allowed() {
            return self.turn_down(ruling, request);
        }
        let till = || Arc::clone(self) as Arc<dyn Till>;
        let account = ledger.map(|ledger| Account::new(till(), *by, decision, ledger));
        if !decision.wait().is_zero() {
            return self.line_up(ruling, account, request);
        }
        request.extensions_mut().insert(decision.clone());
        self.tell(Some(decision), None, ruling.is_local(), request);
        let reservation = ruling.reserve(account, request);
        Verdict::Pass(Grounds::Ruling(ruling), reservation)
    }

    /// Tells the listener, if there is one.
    pub(super) fn tell<B>(
        &self,
        decision: Option<&Decision>,
        reason: Option<Reason<'_>>,
        is_degraded: bool,
        request: &Request<B>,
    ) {
        if let Some(listener) = &self.on_decision {
            listener(&Decided { head: RequestHead::of(request), decision, reason, degraded: is_degraded });
        }
    }

    /// Writes on a response what the verdict on its request rested on.
    pub(super) fn report<B>(&self, grounds: Grounds, response: &mut Response<B>) {
        let decision = match grounds {
            Grounds::Ruling(Ruling { decision, particulars, by: Counted::Shared }) => {
                self.answers.write(&decision, &particulars, response.headers_mut());
                decision
            }
            Grounds::Ruling(Ruling { decision, particulars, by: Counted::Locally }) => {
                self.answers.write_local(&decision, &particulars, response.headers_mut());
                response.extensions_mut().insert(Degraded);
                // A clone, which has no right to a refund: the store has taken nothing that it could give back.
                decision.clone()
            }
            Grounds::Nothing { only_shadows } => {
                if !only_shadows {
                    self.answers.fields.write_uncounted(response.headers_mut());
                }
                response.extensions_mut().insert(Degraded);
                return;
            }
        };
        // Whoever logs a refusal wants to know whose it was: that of an inner limiter stays.
        if response.extensions().get().is_none_or(Decision::is_allowed) {
            response.extensions_mut().insert(decision);
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for Gate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("store", &self.store).field("plan", &self.plan).finish_non_exhaustive()
    }
}
