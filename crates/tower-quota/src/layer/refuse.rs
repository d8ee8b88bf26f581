//! Answers refused requests, and decides requests if the store fails.

use core::error::Error;
use core::time::Duration;
use std::sync::Arc;

use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, Version};
use tower_quota_core::{Charge, Decision, Key, Outcome, Overloaded, Store, Undecidable};

use super::admission::Admission;
use super::shared::Shared;
use super::stage::Step;
use crate::decided::Decided;
use crate::degraded::{Degraded, OnStoreFailure};
use crate::head::RequestHead;
use crate::limit::Limit;
use crate::random::random_up_to;
use crate::request::{RequestContext, Rules};
use crate::response::{Reason, RefusalBody};
use crate::settle::Counted;

const SECOND: Duration = Duration::from_secs(1);

/// Marks a refusal after which the connection should be closed, in the extensions of the response.
///
/// See [`RateLimitLayer::close_after`](crate::RateLimitLayer::close_after).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseConnection;

impl<S: Store> Shared<S> {
    pub(super) fn refuse_over_quota<B>(
        &self,
        context: Box<RequestContext>,
        request: &Request<B>,
    ) -> Response<RefusalBody> {
        let reason = context.report.decision.as_ref().map(Reason::of);
        self.observe(&context, reason, request);
        self.respond(context, None, request)
    }

    /// Returns the response to a refused request that has been observed.
    ///
    /// Without a failure of the store, the decision refuses the request.
    pub(super) fn respond<B>(
        &self,
        mut context: Box<RequestContext>,
        failure: Option<&(dyn Error + Send + Sync + 'static)>,
        request: &Request<B>,
    ) -> Response<RefusalBody> {
        context.report.jitter = draw_jitter(&context);
        let (reason, closes) = match (failure, &context.report.decision) {
            (Some(error), _) => (Reason::StoreFailure(error), false),
            (None, Some(decision)) => (Reason::of(decision), self.note_refusal(decision, &context)),
            // No caller comes here without a decision or an error. If one did, the answer must not
            // look like a success.
            (None, None) => (Reason::TooManyLimits, false),
        };
        let Rules { plan, settings, .. } = &*context.rules;
        let head = RequestHead::of(request);
        let mut response = settings
            .responses
            .refuse(plan, reason, head, Some(&context.report));
        context.attach(&mut response);
        if closes {
            response.extensions_mut().insert(CloseConnection);
            if request.version() <= Version::HTTP_11 {
                let close = const { HeaderValue::from_static("close") };
                response.headers_mut().insert(CONNECTION, close);
            }
        }
        response
    }

    /// Records the client of the refusing limit with the longest wait. Returns whether to close its connection.
    fn note_refusal(&self, decision: &Decision, context: &RequestContext) -> bool {
        let Some(status) = decision.tightest() else {
            return false;
        };
        let Some((limit, key)) = context.keys.iter().find(|(limit, _)| *limit == status.name)
        else {
            return false;
        };
        #[cfg(feature = "top")]
        {
            let now = crate::clients::now();
            let until = now.checked_add(decision.retry_after().unwrap_or_default());
            self.top_refused
                .count(*limit, key, 1, now, until.unwrap_or(now));
        }
        let settings = &context.rules.settings;
        let streak = || self.streaks.refused(*limit, key, settings.local.now());
        // A limit without a key says nothing about the client of this connection.
        *key != Key::EVERYONE
            && settings
                .close_after
                .is_some_and(|most| streak() >= most.get())
    }

    pub(super) fn refuse_undecided<B>(
        &self,
        rules: &Rules,
        reason: Reason<'_>,
        request: &Request<B>,
    ) -> Response<RefusalBody> {
        // The watch has already recorded a missing address.
        if !(matches!(reason, Reason::NoPeerAddress) && rules.watch.is_open()) {
            self.checks.refused(reason);
        }
        let head = RequestHead::of(request);
        let decided = Decided {
            head,
            decision: None,
            reason: Some(reason),
            is_degraded: false,
            keys: &[],
        };
        self.notify(rules, &decided);
        let responses = &rules.settings.responses;
        responses.refuse(&rules.plan, reason, head, None)
    }

    #[cold]
    pub(super) fn fall_back<B>(
        self: &Arc<Self>,
        error: &(dyn Error + Send + Sync + 'static),
        mut context: Box<RequestContext>,
        request: &mut Request<B>,
    ) -> Step<S> {
        let settings = Arc::clone(&context.rules.settings);
        (settings.on_store_error)(error);
        // The store would never decide this request, so the choice for an outage does not apply.
        if is_caused_by::<Undecidable>(error) {
            let reason = Reason::Undecidable(error);
            return Step::Respond(self.refuse_undecided(&context.rules, reason, request));
        }
        // Tell the handler, which may want to act more carefully on an uncounted request.
        request.extensions_mut().insert(Degraded);
        if context.fallback.refuses || context.fallback.known_refusal.is_some() {
            self.outage.failed(error, false, settings.local.now());
        }
        // An outage must not release a client who was refused before, whatever the limit's choice.
        if let Some(known_refusal) = context.fallback.known_refusal.take() {
            context.report.by = Counted::Locally;
            context.rules.metrics.degraded(OnStoreFailure::Local);
            return self.decided(*known_refusal, context, request);
        }
        if context.fallback.refuses {
            return Step::Respond(self.refuse_unavailable(error, context, request));
        }
        context.report.by = Counted::Locally;
        let mut local = core::mem::take(&mut context.fallback.local);
        if is_caused_by::<Overloaded>(error) {
            // A flood that overloads the store must not lift the limits, so count these limits too.
            local.append(&mut context.fallback.local_if_overloaded);
        }
        // Shadows never refuse. If only shadows decide, the request passes uncounted.
        let is_uncounted =
            context.refusal.is_none() && local.iter().all(|owned| owned.as_charge().is_shadow());
        self.outage
            .failed(error, is_uncounted, settings.local.now());
        if is_uncounted {
            context.rules.metrics.degraded(OnStoreFailure::Allow);
            self.observe(&context, None, request);
            let mut admission = Admission::default();
            admission.report(context);
            return Step::Forward(admission);
        }
        let charges: Vec<Charge<'_>> = local.iter().map(|owned| owned.as_charge()).collect();
        let decision = settings
            .local
            .check(&charges, |charge| self.store.known_status(charge));
        if decision.outcome() == Outcome::Never {
            // The request fits into the full quota but not into this instance's share, which is not the client's
            // mistake.
            return Step::Respond(self.refuse_unavailable(error, context, request));
        }
        context.rules.metrics.degraded(OnStoreFailure::Local);
        context.recorded = context.rules.plan.record(&charges);
        self.decided(decision, context, request)
    }

    fn refuse_unavailable<B>(
        &self,
        error: &(dyn Error + Send + Sync + 'static),
        context: Box<RequestContext>,
        request: &Request<B>,
    ) -> Response<RefusalBody> {
        context.rules.metrics.degraded(OnStoreFailure::Refuse);
        self.observe(&context, Some(Reason::StoreFailure(error)), request);
        self.respond(context, Some(error), request)
    }
}

fn draw_jitter(context: &RequestContext) -> Duration {
    let jitter = random_up_to(context.rules.settings.responses.max_jitter);
    let decision = context.report.decision.as_ref();
    let limit = decision.and_then(|decision| context.rules.plan.limit(decision.tightest()?.name));
    match limit.is_some_and(Limit::is_hold) {
        // The end of a hold is unknown, so spread the retries over one and two whole seconds.
        true => jitter.max(random_up_to(2 * SECOND).saturating_sub(SECOND)),
        false => jitter,
    }
}

fn is_caused_by<T: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    error.is::<T>() || error.source().is_some_and(is_caused_by::<T>)
}
