use http::{Request, Response};

use super::body::ResponseBody;
use crate::checks::Mark;
use crate::request::{ResponseContext, Rules};
use crate::settle::{ChargeRecord, Meter, Reservation};

/// An admitted request. Dropping the value before `forward` refunds the charges.
///
/// The parts are boxed, because the future of every request reserves the space.
#[derive(Default)]
pub(super) struct Admission {
    record: Option<Box<ChargeRecord>>,
    /// The units that the request took after a wait.
    holds: Option<Box<ChargeRecord>>,
    response: Option<Box<ResponseContext>>,
    mark: Option<Box<Mark>>,
}

#[derive(Default)]
pub(super) struct Finish {
    response: Option<Box<ResponseContext>>,
    reservation: Option<Reservation>,
}

impl Admission {
    pub(super) fn new(record: Option<ChargeRecord>, mark: Option<Box<Mark>>) -> Self {
        Self {
            record: record.map(Box::new),
            holds: None,
            response: None,
            mark,
        }
    }

    /// Returns an admission without charges to settle.
    pub(super) fn reporting(
        response: Option<Box<ResponseContext>>,
        mark: Option<Box<Mark>>,
    ) -> Self {
        Self {
            record: None,
            holds: None,
            response,
            mark,
        }
    }

    pub(super) fn hold(&mut self, record: ChargeRecord) {
        self.holds = Some(Box::new(record));
    }

    /// Adds the charges of a second decision, which also replaces the report.
    pub(super) fn join(&mut self, mut second: Self) {
        self.holds = second.record.take();
        self.response = second.response.take();
    }

    pub(super) fn report(&mut self, response: Box<ResponseContext>) {
        let rules = &response.rules;
        if rules.writes_fields || rules.settings.attaches_decision || response.report.is_degraded()
        {
            self.response = Some(response);
        }
    }

    /// Hands the charges over to the handler. The charges settle when the response ends.
    pub(super) fn forward<B>(mut self, request: &mut Request<B>) -> Finish {
        if let Some(mark) = self.mark.take() {
            mark.attach_to(request);
        }
        let mut finish = Finish {
            response: self.response.take(),
            reservation: None,
        };
        // The reservation of the other charges contains the holds, and releases them in the end.
        for record in [self.holds.take(), self.record.take()]
            .into_iter()
            .flatten()
        {
            finish.settle(*record, request);
        }
        finish
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        for record in [self.record.take(), self.holds.take()] {
            if let Some(record) = record {
                record.give_back();
            }
        }
    }
}

impl Finish {
    fn settle<B>(&mut self, record: ChargeRecord, request: &mut Request<B>) {
        let is_local = record.is_local();
        let reservation = Reservation::open(record, request);
        if reservation.is_empty() {
            return;
        }
        if let Some(response) = &mut self.response
            && let Some(decision) = &mut response.report.decision
            && !is_local
        {
            // An outer layer must not refund charges that have been settled.
            let _ = decision.refund();
        }
        self.reservation = Some(reservation);
    }

    #[inline]
    pub(super) fn apply_to<B>(self, mut response: Response<B>) -> Response<ResponseBody<B>> {
        if let Some(mut context) = self.response {
            let Rules { plan, settings, .. } = &*context.rules;
            let status = response.status();
            settings
                .responses
                .admitted(plan, &context.report, status, response.headers_mut());
            context.attach(&mut response);
        }
        let Some(reservation) = self.reservation else {
            return response.map(|body| ResponseBody::inner(body, None));
        };
        let (parts, body) = response.into_parts();
        let meter = Meter::start(&parts, reservation);
        Response::from_parts(parts, ResponseBody::inner(body, meter))
    }
}
