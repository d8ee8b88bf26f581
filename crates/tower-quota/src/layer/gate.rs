//! The decisions of the layer, apart from the polling: what to ask, what an answer means, what a response gets.

use core::error::Error;
use core::fmt;
use std::sync::Arc;

use http::Request;
use tower_quota_core::{Decision, Key, Store};

use super::answer::Answer;
use super::local::Local;
use super::turn::Line;
use super::verdict::{Case, Verdict};
use crate::decided::Decided;
use crate::head::RequestHead;
use crate::plan::{Entry, Plan};
use crate::response::{Reason, Responses};
use crate::settle::{Account, Till};

/// What a layer and all its services share.
pub(super) struct Gate<S> {
    pub(super) store: Arc<S>,
    pub(super) plan: Arc<Plan>,
    pub(super) local: Arc<Local>,
    pub(super) responses: Arc<Responses>,
    pub(super) on_store_error: Arc<OnStoreError>,
    pub(super) on_decision: Option<Arc<OnDecision>>,
    pub(super) line: Arc<Line>,
    /// Whether requests and responses carry the decision.
    pub(super) attaches_decisions: bool,
    /// Whether nobody but clients is told of requests that pass at once, and these in the usual way if at all.
    pub(super) is_plain: bool,
}

/// Is told of everything that the store failed to do.
pub(super) type OnStoreError = dyn Fn(&(dyn Error + 'static)) + Send + Sync;

/// Is told of everything that is decided.
pub(super) type OnDecision = dyn Fn(&Decided<'_>) + Send + Sync;

impl<S: Store> Gate<S> {
    /// This gate, having found out whether it [is plain](Self::is_plain).
    pub(super) fn ready(self) -> Self {
        let is_plain = self.on_decision.is_none()
            && !self.attaches_decisions
            && self.responses.is_silent()
            && self.responses.partitions().is_none()
            && self.plan.is_plain();
        Self { is_plain, ..self }
    }

    /// What has to come before the store is asked about a request, if anything.
    #[inline]
    pub(super) fn enter<B>(&self, request: &Request<B>) -> Option<Entry> {
        self.plan.enter(&RequestHead::of(request))
    }

    /// What an answer means for a request. Where this instance decides in the store's place, the answer becomes its own.
    #[inline]
    pub(super) fn judge<B>(
        self: &Arc<Self>,
        answer: &mut Answer<S>,
        case: &mut Case,
        request: &mut Request<B>,
    ) -> Verdict {
        match answer {
            Ok(decision) => {
                self.local.answered();
                if let Some(partitions) = self.responses.partitions() {
                    let of = |key: &Key<'_>| partitions.of(key);
                    case.report.partitions = self.plan.each_key(&RequestHead::of(request), of);
                }
                self.decided(decision, case, request)
            }
            Err(error) => {
                (self.on_store_error)(error);
                let (verdict, decision) = self.fall_back(error, case, request);
                if let Some(decision) = decision {
                    *answer = Ok(decision);
                }
                verdict
            }
        }
    }

    /// What a decision means for a request.
    #[inline]
    pub(super) fn decided<B>(
        self: &Arc<Self>,
        decision: &mut Decision,
        case: &mut Case,
        request: &mut Request<B>,
    ) -> Verdict {
        if !decision.is_allowed() {
            return Verdict::Refuse(self.turn_down(decision, case, request));
        }
        let till = || Arc::clone(self) as Arc<dyn Till>;
        let account = case.ledger.take().map(|ledger| Account::new(till(), case.report.by, decision, ledger));
        if !decision.wait().is_zero() {
            return self.line_up(decision, case, account, request);
        }
        self.admit(decision, case, request);
        Verdict::Pass(case.reserve(decision, account, request))
    }

    /// Tells the handler and the listener of a decision that admits the request, where they want to know.
    #[inline]
    pub(super) fn admit<B>(&self, decision: &Decision, case: &Case, request: &mut Request<B>) {
        if self.attaches_decisions {
            request.extensions_mut().insert(decision.clone());
        }
        self.tell(Some(decision), None, case.is_local(), request);
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
}

impl<S: fmt::Debug> fmt::Debug for Gate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("store", &self.store).field("plan", &self.plan).finish_non_exhaustive()
    }
}
