//! An admitted request until it is forwarded, and the remaining work on its response.

use http::{Request, Response};

use super::body::ResponseBody;
use crate::request::Case;
use crate::settle::{ChargeRecord, Counted, Meter, Reservation};

/// An admitted request, until it is forwarded. If it is dropped before, it refunds the recorded charges.
#[derive(Default)]
pub(super) struct Admission {
    /// Boxed, because the future of every request reserves space for it, and few need it.
    record: Option<Box<ChargeRecord>>,
    /// The decision that the response reports, if any.
    case: Option<Box<Case>>,
}

/// The remaining work on the response to a forwarded request.
#[derive(Default)]
pub(super) struct Finish {
    case: Option<Box<Case>>,
    reservation: Reservation,
}

impl Admission {
    pub(super) fn new(record: Option<ChargeRecord>) -> Self {
        Self { record: record.map(Box::new), case: None }
    }

    /// Adds the report of the decision to the response.
    pub(super) fn report(&mut self, mut case: Box<Case>) {
        case.report.only_shadows = case.fallback.only_shadows;
        let is_told = case.report.decision.is_none() || case.report.by == Counted::Locally;
        if is_told || case.rules.attaches_decision || !case.rules.responses.is_silent() {
            self.case = Some(case);
        }
    }

    /// Attaches to the request the values that its handler needs.
    ///
    /// From here on the end of the handler decides the charges.
    pub(super) fn forward<B>(mut self, request: &mut Request<B>) -> Finish {
        let mut case = self.case.take();
        let Some(record) = self.record.take() else { return Finish { case, reservation: Reservation::default() } };
        let is_local = record.is_local();
        let reservation = Reservation::open(*record, request);
        if let Some(decision) = case.as_mut().and_then(|case| case.report.decision.as_mut())
            && !is_local
            && !reservation.is_empty()
        {
            // A layer that finds the decision in the response must not refund charges that are already settled.
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
    /// Writes the report into the response, and applies the settle rules to it.
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
