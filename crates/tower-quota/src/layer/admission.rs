//! An admitted request until it is forwarded, and what is left to do with its response.

use core::time::Duration;
use std::sync::Arc;

use http::{Request, Response};
use tower_quota_core::Decision;

use super::body::ResponseBody;
use super::pipeline::Case;
use super::shared::Rules;
use crate::degraded::Degraded;
use crate::response::Report;
use crate::settle::{ChargeRecord, Counted, Meter, Reservation};

/// An admitted request, until it is forwarded. Dropped before, it gives back what was recorded of its charges.
#[derive(Default)]
pub(super) struct Admission {
    /// Boxed like the report: the future of every request has room for them, and few need any.
    record: Option<Box<ChargeRecord>>,
    report: Option<Box<Reported>>,
}

/// What is left to do with the response to a request that was forwarded.
#[derive(Default)]
pub(super) struct Finish {
    report: Option<Box<Reported>>,
    reservation: Reservation,
}

/// A report, and the rules by which it is written.
struct Reported {
    rules: Arc<Rules>,
    report: Report,
}

impl Admission {
    pub(super) fn new(record: Option<ChargeRecord>) -> Self {
        Self { record: record.map(Box::new), report: None }
    }

    /// Adds what the response says of the decision.
    pub(super) fn report(&mut self, case: Case, decision: Option<Decision>) {
        let (rules, report) = case.into_report(decision, Duration::ZERO);
        let is_told = report.decision.is_none() || report.by == Counted::Locally || rules.attaches_decision;
        if is_told || !rules.responses.is_silent() {
            self.report = Some(Box::new(Reported { rules, report }));
        }
    }

    /// Leaves with the request what its handler needs. From here on the handler's end decides what it is charged.
    pub(super) fn forward<B>(mut self, request: &mut Request<B>) -> Finish {
        let mut report = self.report.take();
        let Some(record) = self.record.take() else { return Finish { report, reservation: Reservation::default() } };
        let is_local = record.is_local();
        let reservation = Reservation::open(*record, request);
        if let Some(Reported { report: Report { decision: Some(decision), .. }, .. }) = report.as_deref_mut()
            && !is_local
            && !reservation.is_empty()
        {
            // Whoever finds the decision in the response must not refund what is settled already.
            let _ = decision.refund();
        }
        Finish { report, reservation }
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
        if self.report.is_none() && self.reservation.is_empty() {
            return response.map(|body| ResponseBody::inner(body, None));
        }
        self.write(response)
    }

    fn write<B>(self, mut response: Response<B>) -> Response<ResponseBody<B>> {
        if let Some(reported) = self.report {
            let Reported { rules, mut report } = *reported;
            rules.responses.admitted(&report, response.headers_mut());
            rules.attach(&mut report, &mut response);
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

    /// Leaves in a response's extensions what is not for clients.
    ///
    /// The decision is the original, which can be refunded, unless the store has taken nothing that it could give back.
    /// The decision of an inner layer that refused stays: it says more.
    pub(super) fn attach<B>(&self, report: &mut Report, response: &mut Response<B>) {
        let is_local = report.by == Counted::Locally;
        if is_local || report.decision.is_none() {
            response.extensions_mut().insert(Degraded);
        }
        let Some(decision) = &mut report.decision else { return };
        if self.attaches_decision && response.extensions().get().is_none_or(Decision::is_allowed) {
            let mut attached = decision.clone();
            if !is_local {
                core::mem::swap(&mut attached, decision);
            }
            response.extensions_mut().insert(attached);
        }
    }
}
