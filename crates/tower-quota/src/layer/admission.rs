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
    response: Option<Box<ResponseContext>>,
    rare: Option<Box<Rare>>,
}

/// What few admitted requests have.
#[derive(Default)]
struct Rare {
    record: Option<ChargeRecord>,
    /// The units that the request took after a wait.
    holds: Option<ChargeRecord>,
    mark: Option<Box<Mark>>,
}

#[derive(Default)]
pub(super) struct Finish {
    response: Option<Box<ResponseContext>>,
    reservation: Option<Reservation>,
}

impl Admission {
    pub(super) fn new(
        response: Option<Box<ResponseContext>>,
        record: Option<ChargeRecord>,
        mark: Option<Box<Mark>>,
    ) -> Self {
        let mut admission = Self {
            response,
            rare: None,
        };
        if record.is_some() || mark.is_some() {
            admission.rare = Some(Box::new(Rare {
                record,
                holds: None,
                mark,
            }));
        }
        admission
    }

    pub(super) fn hold(&mut self, record: ChargeRecord) {
        self.rare.get_or_insert_default().holds = Some(record);
    }

    /// Adds the charges of a second decision, which also replaces the report.
    pub(super) fn join(&mut self, second: Self) {
        self.response = second.response;
        if let Some(mut rare) = second.rare {
            self.rare.get_or_insert_default().holds = rare.record.take();
        }
    }

    pub(super) fn report(&mut self, response: Box<ResponseContext>) {
        let rules = &response.rules;
        if rules.writes_fields || rules.settings.attaches_decision || response.report.is_degraded()
        {
            self.response = Some(response);
        }
    }

    /// Hands the charges over to the handler. The charges settle when the response ends.
    pub(super) fn forward<B>(self, request: &mut Request<B>) -> Finish {
        let mut finish = Finish {
            response: self.response,
            reservation: None,
        };
        if let Some(rare) = self.rare {
            finish.open(*rare, request);
        }
        finish
    }
}

impl Drop for Rare {
    fn drop(&mut self) {
        for record in [&mut self.record, &mut self.holds].into_iter().flatten() {
            record.give_back();
        }
    }
}

impl Finish {
    #[inline(never)]
    fn open<B>(&mut self, mut rare: Rare, request: &mut Request<B>) {
        if let Some(mark) = rare.mark.take() {
            mark.attach_to(request);
        }
        // The reservation of the other charges contains the holds, and releases them in the end.
        for record in [rare.holds.take(), rare.record.take()]
            .into_iter()
            .flatten()
        {
            self.settle(record, request);
        }
    }

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
            let attaches_decision = settings.attaches_decision;
            context.report.attach(attaches_decision, &mut response);
        }
        let Some(reservation) = self.reservation else {
            return response.map(|body| ResponseBody::inner(body, None));
        };
        let (parts, body) = response.into_parts();
        let meter = Meter::start(&parts, reservation);
        Response::from_parts(parts, ResponseBody::inner(body, meter))
    }
}
