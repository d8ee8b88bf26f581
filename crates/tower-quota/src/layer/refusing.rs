//! The answers to requests that do not pass.

use core::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tower_quota_core::{Decision, Outcome, Store};

use super::gate::Gate;
use super::verdict::Case;
use crate::answer::{Reason, Refused};
use crate::head::RequestHead;

impl<S: Store> Gate<S> {
    /// The answer to a request that is refused by this decision.
    pub(super) fn turn_down<B>(
        &self,
        decision: &mut Decision,
        case: &mut Case,
        request: &Request<B>,
    ) -> Response<Bytes> {
        case.particulars.jitter = self.answers.draw_jitter();
        let reason = match decision.outcome() {
            Outcome::Never => Reason::NeverFits(decision),
            _ => Reason::OverQuota(decision),
        };
        self.tell(Some(decision), Some(reason), case.is_local(), request);
        let refused = Refused::new(reason, RequestHead::of(request), case.particulars.jitter);
        let mut response = self.answers.refuse(&refused, Some((decision, &case.particulars, case.by)));
        self.mark(decision, case, &mut response);
        response
    }

    /// The answer to a request that is refused without a decision.
    pub(super) fn turn_away<B>(&self, reason: Reason<'_>, request: &Request<B>) -> Response<Bytes> {
        self.tell(None, Some(reason), false, request);
        self.answers.refuse(&Refused::new(reason, RequestHead::of(request), Duration::ZERO), None)
    }
}
