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
use crate::answer::{GrpcType, Reason, Refusal, Refused, whole_seconds, write_degraded, write_local, write_uncounted};
use crate::degraded::Degraded;
use crate::head::RequestHead;
use crate::plan::{Asked, Fallback, Plan};
use crate::settle::{Account, Counted, Ledger, Reservation, Till};

/// What a layer and all its services share.
pub(super) struct Gate<S> {
    pub(super) store: Arc<S>,
    pub(super) plan: Arc<Plan>,
    pub(super) local: Arc<Local>,
    pub(super) refusal: Arc<dyn Refusal>,
    pub(super) on_store_error: Arc<OnStoreError>,
    pub(super) line: Arc<Line>,
}

/// Is told of everything that the store failed to do.
pub(super) type OnStoreError = dyn Fn(&(dyn Error + 'static)) + Send + Sync;

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
    Store(Decision),
    /// This instance's own decision, in place of that of a sick store.
    Local(Decision),
    /// None: no limit counts while the store is sick.
    Nothing,
}

impl<S: Store> Gate<S> {
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
        request: &mut Request<B>,
    ) -> Verdict {
        match answer {
            Ok(decision) => {
                self.local.answered();
                self.decided(Grounds::Store(decision), ledger, request)
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
            Fallback::Uncounted => Verdict::Pass(Grounds::Nothing, Reservation::default()),
            // A share may be too small for what the whole quota has room for: that is the store's failing.
            Fallback::Charged((decision, ledger)) if decision.outcome() != Outcome::Never => {
                self.decided(Grounds::Local(decision), ledger, request)
            }
            Fallback::Charged(_) | Fallback::Refuse => {
                let mut response = self.refuse(Reason::StoreFailure(error), request);
                mark_degraded(&mut response);
                Verdict::Refuse(response)
            }
        }
    }

    /// What a decision means for a request.
    fn decided<B>(self: &Arc<Self>, mut grounds: Grounds, ledger: Option<Ledger>, request: &mut Request<B>) -> Verdict {
        let Some(decision) = grounds.decision() else { return Verdict::Pass(grounds, Reservation::default()) };
        let reason = match decision.outcome() {
            Outcome::Allow | Outcome::Wait(_) => {
                request.extensions_mut().insert(decision.clone());
                let wait = decision.wait();
                let account = ledger.map(|ledger| self.account(&grounds, decision, ledger));
                if !wait.is_zero() {
                    return self.line_up(wait, grounds, account, request);
                }
                let reservation = grounds.reserve(account, request);
                return Verdict::Pass(grounds, reservation);
            }
            Outcome::Refuse(_) => Reason::OverQuota(decision),
            Outcome::Never => Reason::NeverFits(decision),
        };
        let mut response = self.refuse(reason, request);
        self.report(grounds, &mut response);
        Verdict::Refuse(response)
    }

    fn account(self: &Arc<Self>, grounds: &Grounds, decision: &Decision, ledger: Ledger) -> Account {
        let counted = if matches!(grounds, Grounds::Local(_)) { Counted::Locally } else { Counted::Shared };
        Account::new(Arc::clone(self) as Arc<dyn Till>, counted, decision, ledger)
    }

    /// The answer to a refused request, but for the rate limit headers.
    pub(super) fn refuse<B>(&self, reason: Reason<'_>, request: &Request<B>) -> Response<Bytes> {
        let head = RequestHead::of(request);
        let refused = Refused::new(reason, head);
        let mut response = match GrpcType::of(head) {
            Some(grpc) => grpc.respond(&refused),
            None => {
                let mut response = self.refusal.respond(&refused);
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
            Grounds::Store(decision) => {
                self.plan.fields.write(&decision, response.headers_mut());
                decision
            }
            Grounds::Local(decision) => {
                write_local(&decision, response.headers_mut());
                mark_degraded(response);
                // A clone, which has no right to a refund: the store has taken nothing that it could give back.
                decision.clone()
            }
            Grounds::Nothing => {
                write_uncounted(response.headers_mut());
                mark_degraded(response);
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
        if let (Self::Store(decision), false) = (self, reservation.is_empty()) {
            // Whoever finds the decision in the response must not give back what is settled already.
            let _ = decision.refund();
        }
        reservation
    }

    pub(super) const fn decision(&self) -> Option<&Decision> {
        match self {
            Self::Store(decision) | Self::Local(decision) => Some(decision),
            Self::Nothing => None,
        }
    }
}

/// Says that the store had no part in a response.
fn mark_degraded<B>(response: &mut Response<B>) {
    write_degraded(response.headers_mut());
    response.extensions_mut().insert(Degraded);
}

impl<S: fmt::Debug> fmt::Debug for Gate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("store", &self.store).field("plan", &self.plan).finish_non_exhaustive()
    }
}
