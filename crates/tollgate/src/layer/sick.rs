//! What happens to requests that the store could not be asked about.

use std::sync::Arc;

use http::Request;
use tollgate_core::{Charge, Outcome, Store};

use super::gate::Gate;
use super::verdict::{Grounds, Ruling, Verdict};
use crate::answer::{Particulars, Reason};
use crate::degraded::Degraded;
use crate::head::RequestHead;
use crate::plan::Fallback;
use crate::settle::{Counted, Reservation};

impl<S: Store> Gate<S> {
    /// What the limits of a request do without the store, which failed so.
    pub(super) fn fall_back<B>(self: &Arc<Self>, error: &S::Error, request: &mut Request<B>) -> Verdict {
        request.extensions_mut().insert(Degraded);
        let check = |charges: &[Charge<'_>]| (self.local.check(charges), self.plan.ledger(charges));
        match self.plan.fall_back(&RequestHead::of(request), check) {
            Fallback::Uncounted { only_shadows } => {
                self.tell(None, None, true, request);
                Verdict::Pass(Grounds::Nothing { only_shadows }, Reservation::default())
            }
            // A share may be too small for what the whole quota has room for: that is the store's failing.
            Fallback::Charged { answer: (decision, ledger), overrides, only_shadows }
                if decision.outcome() != Outcome::Never =>
            {
                let particulars = Particulars { overrides, only_shadows, ..Particulars::default() };
                self.decided(Ruling { decision, particulars, by: Counted::Locally }, ledger, request)
            }
            Fallback::Charged { .. } | Fallback::Refuse => {
                let reason = Reason::StoreFailure(error);
                self.tell(None, Some(reason), true, request);
                let mut response = self.refuse(reason, self.answers.draw_jitter(), request);
                self.answers.fields.mark_degraded(response.headers_mut());
                response.extensions_mut().insert(Degraded);
                Verdict::Refuse(response)
            }
        }
    }
}
