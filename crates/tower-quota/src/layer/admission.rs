use http::{Request, Response};

use super::body::ResponseBody;
use crate::request::{RequestContext, Rules};
use crate::settle::{ChargeRecord, Meter, Reservation};

/// An admitted request. Dropping the value before `forward` refunds the charges.
#[derive(Default)]
pub(super) struct Admission {
    /// The record is boxed, because the future of every request reserves the space.
    record: Option<Box<ChargeRecord>>,
    context: Option<Box<RequestContext>>,
}

#[derive(Default)]
pub(super) struct Finish {
    context: Option<Box<RequestContext>>,
    reservation: Reservation,
}

impl Admission {
    pub(super) fn new(record: Option<ChargeRecord>) -> Self {
        Self {
            record: record.map(Box::new),
            context: None,
        }
    }

    pub(super) fn report(&mut self, context: Box<RequestContext>) {
        let is_told = context.report.is_degraded();
        if is_told
            || context.rules.settings.attaches_decision
            || !context.rules.settings.responses.is_silent()
        {
            self.context = Some(context);
        }
    }

    /// Hands the charges over to the handler. The charges settle when the response ends.
    pub(super) fn forward<B>(mut self, request: &mut Request<B>) -> Finish {
        let mut context = self.context.take();
        let Some(record) = self.record.take() else {
            return Finish {
                context,
                reservation: Reservation::default(),
            };
        };
        let is_local = record.is_local();
        let reservation = Reservation::open(*record, request);
        if let Some(decision) = context
            .as_mut()
            .and_then(|context| context.report.decision.as_mut())
            && !is_local
            && !reservation.is_empty()
        {
            // An outer layer must not refund charges that have been settled.
            let _ = decision.refund();
        }
        Finish {
            context,
            reservation,
        }
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
    #[inline]
    pub(super) fn apply_to<B>(self, response: Response<B>) -> Response<ResponseBody<B>> {
        if self.context.is_none() && self.reservation.is_empty() {
            return response.map(|body| ResponseBody::inner(body, None));
        }
        self.write(response)
    }

    fn write<B>(self, mut response: Response<B>) -> Response<ResponseBody<B>> {
        if let Some(mut context) = self.context {
            let Rules { plan, settings, .. } = &*context.rules;
            settings
                .responses
                .admitted(plan, &context.report, response.headers_mut());
            context.attach(&mut response);
        }
        if self.reservation.is_empty() {
            return response.map(|body| ResponseBody::inner(body, None));
        }
        let (parts, body) = response.into_parts();
        let meter = Meter::start(&parts, self.reservation);
        Response::from_parts(parts, ResponseBody::inner(body, meter))
    }
}
