//! An admitted request until it is forwarded, and what is left to do with its response.

use http::{Request, Response};
use tower_quota_core::Decision;

use super::body::ResponseBody;
use super::pipeline::Case;
use super::shared::Rules;
use crate::degraded::Degraded;
use crate::settle::{ChargeRecord, Counted, Meter, Reservation};

/// An admitted request, until it is forwarded. Dropped before, it gives back what was recorded of its charges.
#[derive(Default)]
pub(super) struct Admission {
    /// Boxed: the future of every request has room for it, and few need any.
    record: Option<Box<ChargeRecord>>,
    /// What the response reports, if it does.
    case: Option<Box<Case>>,
}

/// What is left to do with the response to a request that was forwarded.
#[derive(Default)]
pub(super) struct Finish {
    case: Option<Box<Case>>,
    reservation: Reservation,
}

impl Admission {
    pub(super) fn new(record: Option<ChargeRecord>) -> Self {
        Self { record: record.map(Box::new), case: None }
    }

    /// Adds what the response says of the decision.
    pub(super) fn report(&mut self, mut case: Box<Case>) {
        case.report.only_shadows = case.fallback.only_shadows;
        let is_told = case.report.decision.is_none() || case.report.by == Counted::Locally;
        if is_told || case.rules.attaches_decision || !case.rules.responses.is_silent() {
            self.case = Some(case);
        }
    }

    /// Leaves with the request what its handler needs. From here on the handler's end decides what it is charged.
    pub(super) fn forward<B>(mut self, request: &mut Request<B>) -> Finish {
        let mut case = self.case.take();
        let Some(record) = self.record.take() else { return Finish { case, reservation: Reservation::default() } };
        let is_local = record.is_local();
        let reservation = Reservation::open(*record, request);
        if let Some(decision) = case.as_mut().and_then(|case| case.report.decision.as_mut())
            && !is_local
            && !reservation.is_empty()
        {
            // Whoever finds the decision in the response must not refund what is settled already.
            let _ = decision.refund();
        }
        Finish { case, reservation }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            record.give_back();
        }
    }
}

impl Finish {
    /// Writes the report into the response, and lets the rules that settle see it.
    #[inline]
    pub(super) fn apply_to<B>(self, response: Response<B>) -> Response<ResponseBody<B>> {
        if self.case.is_none() && self.reservation.is_empty() {
            return response.map(|body| ResponseBody::inner(body, None));
        }
        self.write(response)
    }

    fn write<B>(self, mut response: Response<B>) -> Response<ResponseBody<B>> {
        if let Some(mut case) = self.case {
            case.rules.responses.admitted(&case.report, response.headers_mut());
            case.attach(&mut response);
        }
        if self.reservation.is_empty() {
            return response.map(|body| ResponseBody::inner(body, None));
        }
        let (parts, body) = response.into_parts();
        let meter = Meter::start(&parts, self.reservation);
        Response::from_parts(parts, ResponseBody::inner(body, meter))
    }
}

impl Rules {
    /// Leaves the decision in the extensions of an admitted request, for its handler.
    pub(super) fn attach_to_request<B>(&self, decision: &Decision, request: &mut Request<B>) {
        if self.attaches_decision {
            request.extensions_mut().insert(decision.clone());
        }
    }
}

impl Case {
    /// Leaves in a response's extensions what is not for clients.
    ///
    /// The decision is the original, which can be refunded, unless the store has taken nothing that it could give back.
    /// The decision of an inner layer that refused stays: it says more.
    pub(super) fn attach<B>(&mut self, response: &mut Response<B>) {
        let is_local = self.report.by == Counted::Locally;
        if is_local || self.report.decision.is_none() {
            response.extensions_mut().insert(Degraded);
        }
        let Some(decision) = &mut self.report.decision else { return };
        if self.rules.attaches_decision && response.extensions().get().is_none_or(Decision::is_allowed) {
            let mut attached = decision.clone();
            if !is_local {
                core::mem::swap(&mut attached, decision);
            }
            response.extensions_mut().insert(attached);
        }
    }
}
