//! The response to come.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_quota_core::Store;
use tower_service::Service;

use super::before::{After, Before};
use super::body::ResponseBody;
use super::meter::metered;
use super::report::Told;
use crate::response::RefusalBody;
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
        #[pin]
        stage: Stage<Svc, S, Svc::Future, B>,
    }
}

pin_project! {
    /// How far a request has come.
    #[project = StageProjection]
    enum Stage<Svc, S, F, B>
    where
        S: Store,
    {
        // Boxed: behind a store in this process hardly a request gets here, and each has room for it.
        Before {
            before: Pin<Box<Before<Svc, S, B>>>,
        },
        Running {
            #[pin]
            response: F,
            told: Told<S>,
            reservation: Reservation,
        },
        Refused {
            response: Option<Response<RefusalBody>>,
        },
    }
}

impl<Svc, S, B> ResponseFuture<Svc, S, B>
where
    Svc: Service<Request<B>>,
    S: Store,
{
    /// Something comes before the inner service.
    pub(super) fn before(before: Before<Svc, S, B>) -> Self {
        Self { stage: Stage::Before { before: Box::pin(before) } }
    }

    /// There is nothing to tell.
    #[inline]
    pub(super) fn untold(response: Svc::Future) -> Self {
        Self::running(response, Told::Nothing, Reservation::default())
    }

    /// The inner service has been called.
    #[inline]
    pub(super) const fn running(response: Svc::Future, told: Told<S>, reservation: Reservation) -> Self {
        Self { stage: Stage::Running { response, told, reservation } }
    }

    /// There is an answer.
    pub(super) const fn refused(response: Response<RefusalBody>) -> Self {
        Self { stage: Stage::Refused { response: Some(response) } }
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
                StageProjection::Running { response, told, reservation } => {
                    let mut response = ready!(response.poll(cx))?;
                    if matches!(told, Told::Nothing) && reservation.is_empty() {
                        return Poll::Ready(Ok(response.map(|body| ResponseBody::inner(body, None))));
                    }
                    core::mem::replace(told, Told::Nothing).write(&mut response);
                    return Poll::Ready(Ok(metered(response, core::mem::take(reservation))));
                }
                StageProjection::Refused { response } => {
                    return Poll::Ready(Ok(take(response).map(ResponseBody::refusal)));
                }
                StageProjection::Before { before } => match ready!(before.as_mut().poll(cx)) {
                    After::Run(mut held, told, reservation) => {
                        Stage::Running { response: held.service.call(held.request), told, reservation }
                    }
                    After::Refuse(response) => Stage::Refused { response: Some(response) },
                },
            };
            this.stage.set(next);
        }
    }
}

#[expect(clippy::expect_used, reason = "documented: only a future polled after completion finds a slot empty")]
pub(super) fn take<T>(slot: &mut Option<T>) -> T {
    slot.take().expect("polled after completion")
}

impl<Svc, S, B> fmt::Debug for ResponseFuture<Svc, S, B>
where
    Svc: Service<Request<B>>,
    S: Store,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::Before { before } => before.name(),
            Stage::Running { .. } => "running",
            Stage::Refused { .. } => "refused",
        };
        write!(f, "ResponseFuture({stage})")
    }
}
