//! The answers to requests that do not pass.

use core::time::Duration;

use http::{Request, Response};
use tower_quota_core::{Decision, Outcome, Store};

use super::gate::Gate;
use super::verdict::Case;
use crate::head::RequestHead;
use crate::response::{Reason, RefusalBody, Refused};

impl<S: Store> Gate<S> {
    /// The answer to a request that is refused by this decision.
    pub(super) fn turn_down<B>(
        &self,
        decision: &mut Decision,
        case: &mut Case,
        request: &Request<B>,
    ) -> Response<RefusalBody> {
        case.report.jitter = self.responses.draw_jitter();
        // Moved rather than cloned: the report owns it while the response is made.
        case.report.decision = Some(core::mem::take(decision));
        let Case { report, .. } = &*case;
        let reported = report.decision.as_ref().unwrap_or(decision);
        let reason = match reported.outcome() {
            Outcome::Never => Reason::NeverFits(reported),
            _ => Reason::OverQuota(reported),
        };
        self.tell(Some(reported), Some(reason), case.is_local(), request);
        let refused = Refused::new(reason, RequestHead::of(request), report.jitter);
        let mut response = self.responses.refuse(&refused, Some(report));
        if let Some(reported) = case.report.decision.take() {
            *decision = reported;
        }
        self.mark(decision, case, &mut response);
        response
    }

    /// The answer to a request that is refused without a decision.
    pub(super) fn turn_away<B>(&self, reason: Reason<'_>, request: &Request<B>) -> Response<RefusalBody> {
        self.tell(None, Some(reason), false, request);
        self.responses.refuse(&Refused::new(reason, RequestHead::of(request), Duration::ZERO), None)
    }
}
