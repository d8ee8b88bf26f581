use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use http::Response;
use tower_quota_core::Store;

use super::admission::Admission;
use super::shared::CachedStore;
use crate::policy::LookUps;
use crate::request::{RequestContext, Rules, WaitingPlace};
use crate::response::RefusalBody;
use crate::settle::{InFlight, RecordedCharge};
use crate::traced::CallSpan;

pub(super) enum Step<S: Store> {
    Forward(Admission),
    Respond(Response<RefusalBody>),
    Wait(Stage<S>),
}

/// A wait of a request before the layer calls the inner service.
pub(super) enum Stage<S: Store> {
    LookUp {
        look_ups: LookUps,
        // The policy that began the look-up also decides the request.
        rules: Arc<Rules>,
    },
    Decide {
        call: InFlight<CachedStore<S>>,
        start: Instant,
        span: Option<CallSpan>,
        context: Box<RequestContext>,
    },
    Queue {
        wait: Duration,
        place: WaitingPlace,
        /// The admission, which refunds the turn if the request is dropped.
        admission: Admission,
        /// The units to take when the turn comes, so that waiting requests hold nothing.
        holds: Vec<RecordedCharge>,
        context: Box<RequestContext>,
    },
}
