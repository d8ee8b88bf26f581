//! The decisions of the layer, apart from the polling: what to ask, what an answer means, what a response gets.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response};
use tollgate_core::{Decision, Outcome, Store};

use crate::answer::{GrpcType, Reason, Refusal, Refused, whole_seconds};
use crate::head::RequestHead;
use crate::plan::{Asked, Plan};
use crate::policy::OnStoreFailure;

/// What a layer and all its services share.
pub(super) struct Gate<S> {
    pub(super) store: Arc<S>,
    pub(super) plan: Arc<Plan>,
    pub(super) refusal: Arc<dyn Refusal>,
}

/// What happens to a request.
pub(super) enum Verdict {
    /// It goes ahead; without a decision, when the store failed.
    Pass(Option<Decision>),
    /// It goes ahead after its wait.
    Wait(Duration, Decision),
    /// This is its answer.
    Refuse(Response<Bytes>),
}

impl<S: Store> Gate<S> {
    /// Asks the store about a request.
    pub(super) fn ask<B>(&self, request: &Request<B>) -> Asked<S::Future> {
        self.plan.ask(&RequestHead::of(request), |charges| self.store.check(charges))
    }

    /// What the store's answer means for a request.
    pub(super) fn judge<B>(&self, answer: Result<Decision, S::Error>, request: &mut Request<B>) -> Verdict {
        let decision = match answer {
            Ok(decision) => decision,
            Err(error) => {
                return match self.plan.on_store_failure {
                    OnStoreFailure::Allow => Verdict::Pass(None),
                    OnStoreFailure::Refuse => Verdict::Refuse(self.refuse(Reason::StoreFailure(&error), request)),
                };
            }
        };
        let reason = match decision.outcome() {
            Outcome::Allow | Outcome::Wait(_) => {
                request.extensions_mut().insert(decision.clone());
                return match decision.wait() {
                    Duration::ZERO => Verdict::Pass(Some(decision)),
                    wait => Verdict::Wait(wait, decision),
                };
            }
            Outcome::Refuse(_) => Reason::OverQuota(&decision),
            Outcome::Never => Reason::NeverFits(&decision),
        };
        let mut response = self.refuse(reason, request);
        self.report(decision, &mut response);
        Verdict::Refuse(response)
    }

    /// The answer to a refused request, but for the rate limit headers.
    pub(super) fn refuse<B>(&self, reason: Reason<'_>, request: &Request<B>) -> Response<Bytes> {
        let head = RequestHead::of(request);
        let refused = Refused::new(reason, head);
        let mut response = match GrpcType::of(head.headers()) {
            Some(grpc) => grpc.respond(&refused),
            None => {
                let mut response = self.refusal.respond(&refused);
                response.headers_mut().entry(CACHE_CONTROL).or_insert(const { HeaderValue::from_static("no-store") });
                if head.method() == Method::HEAD {
                    // What a GET would have brought, without bringing it.
                    let length = core::mem::take(response.body_mut()).len();
                    response.headers_mut().insert(CONTENT_LENGTH, length.into());
                }
                response
            }
        };
        if let Some(wait) = refused.retry_after() {
            response.headers_mut().entry(RETRY_AFTER).or_insert_with(|| whole_seconds(wait).max(1).into());
        }
        response
    }

    /// Writes a decision on the response to its request.
    pub(super) fn report<B>(&self, decision: Decision, response: &mut Response<B>) {
        self.plan.fields.write(&decision, response.headers_mut());
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
