//! Decides requests without the store.

use core::error::Error;
use core::time::Duration;
use std::sync::Arc;

use http::{Request, Response};
use tower_quota_core::{Charge, Outcome, Overloaded, Store, Undecidable};

use super::admission::Admission;
use super::shared::LayerState;
use super::stage::Step;
use crate::degraded::{Degraded, OnStoreFailure};
use crate::limit::{Flagged, Limit};
use crate::observe::{Event, StoreFailure};
use crate::policy::Fallback;
use crate::request::RequestContext;
use crate::response::{Reason, RefusalBody};
use crate::settle::StoreCallError;

impl<S: Store> LayerState<S> {
    #[cold]
    pub(super) fn fall_back<B>(
        self: &Arc<Self>,
        failure: &StoreCallError<S::Error>,
        duration: Option<Duration>,
        mut context: Box<RequestContext>,
        mut fallback: Fallback,
        request: &mut Request<B>,
    ) -> Step<S> {
        let (error, rules) = (failure.error(), Arc::clone(&context.response.rules));
        let notify = |choice| {
            let failure = StoreFailure {
                kind: failure.kind(),
                error,
                duration,
                choice,
            };
            rules.observers.notify(&Event::Failed(failure), &rules);
        };
        // The store would never decide this request, so the choice for an outage does not apply.
        if is_caused_by::<Undecidable>(error) {
            notify(None);
            let reason = Reason::Undecidable(error);
            return Step::Respond(self.refuse_undecided(&rules, reason, request));
        }
        // Tell the handler, which may want to act more carefully on an uncounted request.
        request.extensions_mut().insert(Degraded);
        Flagged::attach(fallback.flagged, request);
        let plan = &rules.plan;
        let mut limits = context.keys.iter().map(|(limit, _)| plan.limit(*limit));
        let only_shadows = limits.all(|limit| limit.is_some_and(Limit::is_shadow));
        context.response.report.only_shadows = only_shadows;
        // An outage must not release a client who was refused before, whatever the limit's choice.
        if let Some(known_refusal) = context.known_refusal.take() {
            notify(Some(OnStoreFailure::Local));
            context.response.report.is_local = true;
            context.response.report.decision = Some(*known_refusal);
            return self.decided(context, request);
        }
        if fallback.refuses {
            notify(Some(OnStoreFailure::Refuse));
            return Step::Respond(self.refuse_unavailable(error, &mut context, request));
        }
        let mut local = fallback.local;
        if is_caused_by::<Overloaded>(error) {
            // A flood that overloads the store must not lift the limits, so count these limits too.
            local.append(&mut fallback.local_if_overloaded);
        }
        context.response.report.is_local = true;
        // Dry runs change nothing. If only dry runs are local, the request passes uncounted.
        if context.refusal.is_none() && !rules.plan.has_effect(&local) {
            notify(Some(OnStoreFailure::Allow));
            self.observe(&context.report(), None, request);
            let mut admission = Admission::new(None, None, context.mark.take());
            admission.report(context.response);
            return Step::Forward(admission);
        }
        let charges: Vec<Charge<'_>> = local.iter().map(|owned| owned.as_charge()).collect();
        let counters = &rules.settings.local;
        let decision = counters.check(&charges, |charge| self.store.known_status(charge));
        if decision.outcome() == Outcome::Never {
            // The request fits into the full quota but not into this instance's share, which is not the client's
            // mistake.
            notify(Some(OnStoreFailure::Refuse));
            return Step::Respond(self.refuse_unavailable(error, &mut context, request));
        }
        notify(Some(OnStoreFailure::Local));
        context.recorded = rules.plan.record(&charges);
        context.response.report.decision = Some(decision);
        self.decided(context, request)
    }

    fn refuse_unavailable<B>(
        &self,
        error: &(dyn Error + Send + Sync + 'static),
        context: &mut RequestContext,
        request: &Request<B>,
    ) -> Response<RefusalBody> {
        let reason = Reason::StoreFailure(error);
        self.observe(&context.report(), Some(reason), request);
        self.respond(context.report(), Some(error), request)
    }
}

fn is_caused_by<T: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    error.is::<T>() || error.source().is_some_and(is_caused_by::<T>)
}
