//! The response to come.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tollgate_core::Store;
use tower_service::Service;

use super::body::ResponseBody;
use super::gate::Gate;
use super::meter::metered;
use super::pending::Pending;
use super::turn::Turn;
use super::verdict::{Grounds, Ruling, Verdict};
use crate::answer::Reason;
use crate::look_up::LookingUp;
use crate::plan::{Asked, Overrides};
use crate::settle::Reservation;

pin_project! {
    /// The future of [`RateLimit`](crate::RateLimit).
    ///
    /// Dropping it is safe. While something is looked up for its request, nothing has been charged. While the request
    /// waits for a turn, the inner service is never called, and the turn is given back with all that the request was
    /// charged; what is given back at other times, [`settle`](crate::settle) tells.
    ///
    /// # Panics
    /// When polled after it has completed, as futures may; when a request has to wait, or something has to be looked up,
    /// outside a tokio runtime with a timer.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<Svc, S, B>
    where
        Svc: Service<Request<B>>,
        S: Store,
    {
        gate: Arc<Gate<S>>,
        #[pin]
        stage: Stage<Svc, Pending<S>, Svc::Future, B>,
    }
}

pin_project! {
    /// How far a request has come. What a stage hands to the next is an `Option` to be taken from behind the pin.
    #[project = StageProjection]
    enum Stage<Svc, A, F, B> {
        LookingUp {
            #[pin]
            looking_up: LookingUp,
            held: Option<Held<Svc, B>>,
        },
        Deciding {
            #[pin]
            answer: A,
            overrides: Overrides,
            held: Option<Held<Svc, B>>,
        },
        Waiting {
            #[pin]
            sleep: Sleep,
            held: Option<(Held<Svc, B>, Ruling, Turn)>,
        },
        Running {
            #[pin]
            response: F,
            grounds: Option<Grounds>,
            reservation: Reservation,
        },
        Refused {
            response: Option<Response<Bytes>>,
        },
    }
}

/// A request and the service that is ready for it.
struct Held<Svc, B> {
    service: Svc,
    request: Request<B>,
}

impl<Svc, S, B> ResponseFuture<Svc, S, B>
where
    Svc: Service<Request<B>>,
    S: Store,
{
    /// The store has been asked.
    pub(super) fn deciding(
        gate: Arc<Gate<S>>,
        answer: Pending<S>,
        overrides: Overrides,
        service: Svc,
        request: Request<B>,
    ) -> Self {
        Self { gate, stage: Stage::Deciding { answer, overrides, held: Some(Held { service, request }) } }
    }

    /// The store is asked when this has been found out.
    pub(super) fn looking_up(gate: Arc<Gate<S>>, looking_up: LookingUp, service: Svc, request: Request<B>) -> Self {
        Self { gate, stage: Stage::LookingUp { looking_up, held: Some(Held { service, request }) } }
    }

    /// No limit applies.
    pub(super) fn running(gate: Arc<Gate<S>>, response: Svc::Future) -> Self {
        Self { gate, stage: Stage::Running { response, grounds: None, reservation: Reservation::default() } }
    }

    /// No need to ask.
    pub(super) const fn refused(gate: Arc<Gate<S>>, response: Response<Bytes>) -> Self {
        Self { gate, stage: Stage::Refused { response: Some(response) } }
    }
}

impl<Svc, S, B, R> Future for ResponseFuture<Svc, S, B>
where
    Svc: Service<Request<B>, Response = Response<R>>,
    S: Store,
{
    type Output = Result<Response<ResponseBody<R>>, Svc::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.stage.as_mut().project() {
                StageProjection::LookingUp { looking_up, held } => {
                    let found = ready!(looking_up.poll(cx));
                    let mut held = take(held);
                    held.request.extensions_mut().extend(found);
                    match this.gate.ask(&held.request) {
                        Asked::Nothing => held.run(None, Reservation::default()),
                        Asked::Missing(scope) => {
                            let response = this.gate.turn_away(Reason::MissingKey(scope), &held.request);
                            Stage::Refused { response: Some(response) }
                        }
                        Asked::Charged(answer, overrides) => Stage::Deciding { answer, overrides, held: Some(held) },
                    }
                }
                StageProjection::Deciding { answer, overrides, held } => {
                    let (answer, ledger) = ready!(answer.poll(cx));
                    let mut held = take(held);
                    match this.gate.judge(answer, ledger, core::mem::take(overrides), &mut held.request) {
                        Verdict::Pass(grounds, reservation) => held.run(Some(grounds), reservation),
                        Verdict::Wait(wait, ruling, turn) => {
                            #[expect(clippy::disallowed_methods, reason = "waiting one's turn is what was asked for")]
                            let sleep = tokio::time::sleep(wait);
                            Stage::Waiting { sleep, held: Some((held, ruling, turn)) }
                        }
                        Verdict::Refuse(response) => Stage::Refused { response: Some(response) },
                    }
                }
                StageProjection::Waiting { sleep, held } => {
                    ready!(sleep.poll(cx));
                    let (mut held, mut ruling, turn) = take(held);
                    let reservation = ruling.reserve(turn.take(), &mut held.request);
                    held.run(Some(Grounds::Ruling(ruling)), reservation)
                }
                StageProjection::Running { response, grounds, reservation } => {
                    let mut response = ready!(response.poll(cx))?;
                    if let Some(grounds) = grounds.take() {
                        this.gate.report(grounds, &mut response);
                    }
                    return Poll::Ready(Ok(metered(response, core::mem::take(reservation))));
                }
                StageProjection::Refused { response } => {
                    return Poll::Ready(Ok(take(response).map(ResponseBody::refusal)));
                }
            };
            this.stage.set(next);
        }
    }
}

impl<Svc: Service<Request<B>>, B> Held<Svc, B> {
    fn run<A>(mut self, grounds: Option<Grounds>, reservation: Reservation) -> Stage<Svc, A, Svc::Future, B> {
        Stage::Running { response: self.service.call(self.request), grounds, reservation }
    }
}

#[expect(clippy::expect_used, reason = "documented: only a future polled after completion finds a slot empty")]
fn take<T>(slot: &mut Option<T>) -> T {
    slot.take().expect("polled after completion")
}

impl<Svc, S, B> fmt::Debug for ResponseFuture<Svc, S, B>
where
    Svc: Service<Request<B>>,
    S: Store,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::LookingUp { .. } => "looking up",
            Stage::Deciding { .. } => "deciding",
            Stage::Waiting { .. } => "waiting",
            Stage::Running { .. } => "running",
            Stage::Refused { .. } => "refused",
        };
        write!(f, "ResponseFuture({stage})")
    }
}
