//! Takes the units of concurrency limits when the turn of a waiting request comes.

use core::time::Duration;
use std::sync::Arc;

use http::Request;
use tower_quota_core::{Charge, Operation, Store};

use super::admission::Admission;
use super::future::report_answer;
use super::shared::{CachedStore, LayerState};
use super::stage::Step;
use crate::head::RequestHead;
use crate::limit::{Flagged, Limit};
use crate::observe::now;
use crate::request::RequestContext;
use crate::settle::{ChargeRecord, Counted, InFlight, RecordedCharge, StoreCallError};

impl<S: Store> LayerState<S> {
    /// Decides the concurrency limits of a request whose wait is over.
    ///
    /// Dropping the admission refunds the other charges.
    pub(super) async fn take_holds<B>(
        self: &Arc<Self>,
        mut admission: Admission,
        holds: Vec<RecordedCharge>,
        mut context: Box<RequestContext>,
        request: &mut Request<B>,
    ) -> Step<S> {
        let rules = Arc::clone(&context.response.rules);
        let by = Counted::of(&context.response.report, &rules);
        let start = now();
        let (answer, holds) = if let Counted::Locally(local) = &by {
            let decision = local.apply(Operation::Check, &charges(&holds));
            (Ok(decision), holds)
        } else {
            let call = self.store.apply(Operation::Check, &charges(&holds));
            let call = InFlight::<CachedStore<S>>::new(call, holds, self.settler());
            call.answer(rules.settings.store_timeout).await
        };
        let duration = start.elapsed();
        let decision = match answer {
            Ok(decision) => decision,
            Err(failure) => {
                return self.hold_without_store(&failure, duration, admission, context, request);
            }
        };
        if matches!(by, Counted::Shared) && self.store.is_shared() {
            report_answer(&decision, &context, duration);
        }
        if !decision.is_allowed() {
            context.response.report.decision = Some(decision);
            return Step::Respond(self.refuse_over_quota(context.report(), request));
        }
        Flagged::attach(rules.plan.flagged(&decision), request);
        admission.hold(ChargeRecord::new(self.settler(), by, &decision, holds));
        self.observe(&context.report(), None, request);
        admission.report(context.response);
        Step::Forward(admission)
    }

    /// Lets concurrency limits choose for the outage. The store has counted the other limits.
    fn hold_without_store<B>(
        self: &Arc<Self>,
        failure: &StoreCallError<S::Error>,
        duration: Duration,
        mut admission: Admission,
        mut context: Box<RequestContext>,
        request: &mut Request<B>,
    ) -> Step<S> {
        context.known_refusal = None;
        // The decision of the store is not the decision about the holds.
        context.response.report.decision = None;
        let fallback = context.fallback(&RequestHead::of(request), Limit::is_hold);
        match self.fall_back(failure, Some(duration), context, fallback, request) {
            Step::Forward(holds) => {
                admission.join(holds);
                Step::Forward(admission)
            }
            step => step,
        }
    }
}

fn charges(holds: &[RecordedCharge]) -> Vec<Charge<'_>> {
    holds.iter().map(RecordedCharge::as_charge).collect()
}
