//! The decisions of the layer, apart from the polling: what to ask, what an answer means, what a response gets.

use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response};
use tollgate_core::{Charge, Decision, Outcome, Store};

use super::local::Local;
use super::pending::Pending;
use super::turn::{Line, Turn};
use crate::answer::{Answers, GrpcType, Particulars, Reason, Refused, whole_seconds};
use crate::decided::Decided;
use crate::degraded::Degraded;
use crate::head::RequestHead;
use crate::plan::{Asked, Entry, Fallback, Overrides, Plan};
use crate::settle::{Account, Counted, Ledger, Reservation, Till};

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

/// What happens to a request.
pub(super) enum Verdict {
    /// It goes ahead; this has to be dropped when it is over.
    Pass(Grounds, Reservation),
    /// It goes ahead after its wait, with its turn.
    Wait(Duration, Grounds, Turn),
    /// This is its answer.
    Refuse(Response<Bytes>),
}

/// What a verdict rests on.
pub(super) enum Grounds {
    /// The store's decision.
    Store(Decision, Particulars),
    /// This instance's own decision, in place of that of a sick store.
    Local(Decision, Particulars),
    /// None: no limit counts while the store is sick.
    Nothing,
}

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
                self.decided(Grounds::Store(decision, particulars), ledger, request)
            }
            Err(error) => {
                (self.on_store_error)(&error);
                self.fall_back(&error, request)
            }
        }
    }

    /// What happens to a request that the store could not be asked about.
    fn fall_back<B>(self: &Arc<Self>, error: &S::Error, request: &mut Request<B>) -> Verdict {
        request.extensions_mut().insert(Degraded);
        let check = |charges: &[Charge<'_>]| (self.local.check(charges), self.plan.ledger(charges));
        match self.plan.fall_back(&RequestHead::of(request), check) {
            Fallback::Uncounted => {
                self.tell(None, None, true, request);
                Verdict::Pass(Grounds::Nothing, Reservation::default())
            }
            // A share may be too small for what the whole quota has room for: that is the store's failing.
            Fallback::Charged((decision, ledger)) if decision.outcome() != Outcome::Never => {
                self.decided(Grounds::Local(decision, Particulars::default()), ledger, request)
            }
            Fallback::Charged(_) | Fallback::Refuse => {
                let reason = Reason::StoreFailure(error);
                self.tell(None, Some(reason), true, request);
                let mut response = self.refuse(reason, self.answers.draw_jitter(), request);
                self.answers.fields.mark_degraded(response.headers_mut());
                response.extensions_mut().insert(Degraded);
                Verdict::Refuse(response)
            }
        }
    }

    /// What the answer to a request is told beside the store's decision.
    fn particulars<B>(&self, overrides: Overrides, request: &Request<B>) -> Particulars {
        let partitions = match &self.answers.partitions {
            Some(partitions) => self.plan.each_key(&RequestHead::of(request), |key| partitions.of(key)),
            None => Box::default(),
        };
        Particulars { overrides, partitions, jitter: Duration::ZERO }
    }

    /// What a decision means for a request.
    fn decided<B>(self: &Arc<Self>, mut grounds: Grounds, ledger: Option<Ledger>, request: &mut Request<B>) -> Verdict {
        let Some(decision) = grounds.decision() else { return Verdict::Pass(grounds, Reservation::default()) };
        if !decision.is_allowed() {
            return self.turn_down(grounds, request);
        }
        request.extensions_mut().insert(decision.clone());
        let wait = decision.wait();
        let account = ledger.map(|ledger| self.account(&grounds, decision, ledger));
        if !wait.is_zero() {
            return self.line_up(wait, grounds, account, request);
        }
        self.tell(Some(decision), None, grounds.are_local(), request);
        let reservation = grounds.reserve(account, request);
        Verdict::Pass(grounds, reservation)
    }

    /// Refuses a request on these grounds.
    pub(super) fn turn_down<B>(&self, mut grounds: Grounds, request: &Request<B>) -> Verdict {
        let is_degraded = grounds.are_local();
        let (Grounds::Store(decision, particulars) | Grounds::Local(decision, particulars)) = &mut grounds else {
            return Verdict::Pass(grounds, Reservation::default());
        };
        let reason = match decision.outcome() {
            Outcome::Never => Reason::NeverFits(decision),
            _ => Reason::OverQuota(decision),
        };
        particulars.jitter = self.answers.draw_jitter();
        self.tell(Some(decision), Some(reason), is_degraded, request);
        let mut response = self.refuse(reason, particulars.jitter, request);
        self.report(grounds, &mut response);
        Verdict::Refuse(response)
    }

    fn account(self: &Arc<Self>, grounds: &Grounds, decision: &Decision, ledger: Ledger) -> Account {
        let counted = if grounds.are_local() { Counted::Locally } else { Counted::Shared };
        Account::new(Arc::clone(self) as Arc<dyn Till>, counted, decision, ledger)
    }

    /// The answer to a request that is refused without a decision.
    pub(super) fn turn_away<B>(&self, reason: Reason<'_>, request: &Request<B>) -> Response<Bytes> {
        self.tell(None, Some(reason), false, request);
        self.refuse(reason, Duration::ZERO, request)
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

    /// The answer to a refused request, whose wait this jitter makes longer, but for the rate limit headers.
    fn refuse<B>(&self, reason: Reason<'_>, jitter: Duration, request: &Request<B>) -> Response<Bytes> {
        let head = RequestHead::of(request);
        let refused = Refused::new(reason, head, jitter);
        let mut response = match GrpcType::of(head) {
            Some(grpc) => grpc.respond(&refused, self.answers.grpc_domain),
            None => {
                let mut response = self.answers.refusal.respond(&refused);
                if head.method() == Method::HEAD {
                    // What a GET would have brought, without bringing it.
                    let length = core::mem::take(response.body_mut()).len();
                    response.headers_mut().insert(CONTENT_LENGTH, length.into());
                }
                response
            }
        };
        response.headers_mut().entry(CACHE_CONTROL).or_insert(const { HeaderValue::from_static("no-store") });
        if let Some(wait) = refused.retry_after() {
            response.headers_mut().entry(RETRY_AFTER).or_insert_with(|| whole_seconds(wait).max(1).into());
        }
        response
    }

    /// Writes on a response what the verdict on its request rested on.
    pub(super) fn report<B>(&self, grounds: Grounds, response: &mut Response<B>) {
        let decision = match grounds {
            Grounds::Store(decision, particulars) => {
                self.answers.write(&decision, &particulars, response.headers_mut());
                decision
            }
            Grounds::Local(decision, particulars) => {
                self.answers.write_local(&decision, &particulars, response.headers_mut());
                response.extensions_mut().insert(Degraded);
                // A clone, which has no right to a refund: the store has taken nothing that it could give back.
                decision.clone()
            }
            Grounds::Nothing => {
                self.answers.fields.write_uncounted(response.headers_mut());
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

impl Grounds {
    /// Leaves with a request what it takes to settle its charges.
    pub(super) fn reserve<B>(&mut self, account: Option<Account>, request: &mut Request<B>) -> Reservation {
        let reservation = Reservation::open(account, request);
        if let (Self::Store(decision, _), false) = (self, reservation.is_empty()) {
            // Whoever finds the decision in the response must not give back what is settled already.
            let _ = decision.refund();
        }
        reservation
    }

    pub(super) const fn decision(&self) -> Option<&Decision> {
        match self {
            Self::Store(decision, _) | Self::Local(decision, _) => Some(decision),
            Self::Nothing => None,
        }
    }

    /// Whether this instance decided by itself.
    pub(super) const fn are_local(&self) -> bool {
        matches!(self, Self::Local(..))
    }
}

impl<S: fmt::Debug> fmt::Debug for Gate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("store", &self.store).field("plan", &self.plan).finish_non_exhaustive()
    }
}
