//! Takes the units of concurrency limits when the turn of a waiting request comes.

use std::sync::Arc;

use http::Request;
use tower_quota_core::{Charge, Operation, OwnedCharge, Store};

use super::admission::Admission;
use super::shared::{CachedStore, Shared};
use super::stage::Step;
use crate::request::RequestContext;
use crate::settle::StoreCallError;
use crate::settle::{ChargeRecord, Counted, InFlight, RecordedCharge};

impl<S: Store> Shared<S> {
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
        let settings = Arc::clone(&context.response.rules.settings);
        let by = Counted::of(&context.response.report);
        let (answer, holds) = if by == Counted::Locally {
            let decision = settings.local.apply(Operation::Check, &charges(&holds));
            (Ok(decision), holds)
        } else {
            let call = self.store.apply(Operation::Check, &charges(&holds));
            let call = InFlight::<CachedStore<S>>::new(call, holds, self.settler());
            call.answer(settings.store_timeout).await
        };
        match answer {
            Ok(decision) if decision.is_allowed() => {
                admission.hold(ChargeRecord::new(self.settler(), by, &decision, holds));
                admission.report(context.response);
                Step::Forward(admission)
            }
            Ok(decision) => {
                context.response.report.decision = Some(decision);
                Step::Respond(self.refuse_over_quota(context, request))
            }
            Err(failure) => self.hold_without_store(&failure, admission, context, request),
        }
    }

    /// Lets concurrency limits choose for the outage. The store has counted the other limits.
    fn hold_without_store<B>(
        self: &Arc<Self>,
        failure: &StoreCallError<S::Error>,
        mut admission: Admission,
        mut context: Box<RequestContext>,
        request: &mut Request<B>,
    ) -> Step<S> {
        let fallback = &mut context.fallback;
        fallback.flagged.clear();
        let is_hold = |owned: &OwnedCharge| owned.as_charge().is_hold();
        fallback.local.retain(is_hold);
        fallback.local_if_overloaded.retain(is_hold);
        match self.fall_back(failure, None, context, request) {
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
