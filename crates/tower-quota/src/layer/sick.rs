//! What happens to requests that the store could not be asked about.

use std::sync::Arc;

use http::Request;
use tower_quota_core::{Charge, Decision, Outcome, Store};

use super::gate::Gate;
use super::verdict::{Case, Verdict};
use crate::degraded::Degraded;
use crate::head::RequestHead;
use crate::plan::Fallback;
use crate::response::{Reason, Refused, Report};
use crate::settle::{Counted, Reservation};

impl<S: Store> Gate<S> {
    /// What the limits of a request do without the store, which failed so; and this instance's decision, if it made one.
    #[cold]
    pub(super) fn fall_back<B>(
        self: &Arc<Self>,
        error: &S::Error,
        case: &mut Case,
        request: &mut Request<B>,
    ) -> (Verdict, Option<Decision>) {
        request.extensions_mut().insert(Degraded);
        let check = |charges: &[Charge<'_>]| (self.local.check(charges), self.plan.ledger(charges));
        match self.plan.fall_back(&RequestHead::of(request), check) {
            Fallback::Uncounted { only_shadows } => {
                case.report.only_shadows = only_shadows;
                self.tell(None, None, true, request);
                (Verdict::Pass(Reservation::default()), None)
            }
            // A share may be too small for what the whole quota has room for: that is the store's failing.
            Fallback::Charged { answer: (mut decision, ledger), overrides, only_shadows }
                if decision.outcome() != Outcome::Never =>
            {
                let report = Report { overrides, only_shadows, by: Counted::Locally, ..Report::new(None) };
                *case = Case { report, ledger };
                let verdict = self.decided(&mut decision, case, request);
                (verdict, Some(decision))
            }
            Fallback::Charged { .. } | Fallback::Refuse => {
                let reason = Reason::StoreFailure(error);
                self.tell(None, Some(reason), true, request);
                let refused = Refused::new(reason, RequestHead::of(request), self.responses.draw_jitter());
                let mut response = self.responses.refuse(&refused, None);
                response.extensions_mut().insert(Degraded);
                (Verdict::Refuse(response), None)
            }
        }
    }
}
