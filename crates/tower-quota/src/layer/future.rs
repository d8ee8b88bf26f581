use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;

use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_quota_core::Store;
use tower_service::Service;

use super::admission::{Admission, Finish};
use super::body::ResponseBody;
use super::pipeline::Step;
use super::shared::Shared;
use super::stage::{Stage, take};
use crate::response::RefusalBody;

pin_project! {
    /// The future of [`RateLimit`](crate::RateLimit).
    ///
    /// If you drop the future while a request waits, the layer refunds all charges. [`settle`](crate::settle) describes
    /// the refunds at other times.
    ///
    /// # Panics
    /// When you poll a completed future, or when waits and look-ups lack a tokio runtime with a timer.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<Svc, S, B>
    where
        Svc: Service<Request<B>>,
        S: Store,
    {
        #[pin]
        pub(super) state: State<Svc, S, Svc::Future, B>,
    }
}

pin_project! {
    #[project = StateProjection]
    pub(super) enum State<Svc, S, F, B>
    where
        S: Store,
    {
        // Boxed, because every future reserves the space, and few requests wait.
        Waiting {
            waiting: Pin<Box<Waiting<Svc, S, B>>>,
        },
        Running {
            #[pin]
            response: F,
            finish: Finish,
        },
        Responding {
            response: Option<Response<RefusalBody>>,
        },
    }
}

pin_project! {
    pub(super) struct Waiting<Svc, S, B>
    where
        S: Store,
    {
        pub(super) shared: Arc<Shared<S>>,
        // A clone that has not been polled ready.
        pub(super) service: Svc,
        pub(super) request: Option<Request<B>>,
        #[pin]
        pub(super) stage: Option<Stage<S>>,
        // Set once only the service's readiness is missing.
        pub(super) admission: Option<Admission>,
    }
}

enum Waited<B> {
    Forward(Request<B>, Finish),
    Respond(Response<RefusalBody>),
}

impl<Svc, S: Store, B> Waiting<Svc, S, B> {
    fn poll<R>(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Waited<B>, Svc::Error>>
    where
        Svc: Service<Request<B>, Response = R>,
    {
        let mut this = self.project();
        while let Some(stage) = this.stage.as_mut().as_pin_mut() {
            let event = ready!(stage.poll(cx));
            let Some(request) = this.request else {
                return Poll::Pending;
            };
            match this.shared.resume(event, request) {
                Step::Forward(admission) => {
                    this.stage.set(None);
                    *this.admission = Some(admission);
                }
                Step::Respond(response) => return Poll::Ready(Ok(Waited::Respond(response))),
                Step::Wait(stage) => this.stage.set(Some(stage)),
            }
        }
        ready!(this.service.poll_ready(cx))?;
        let mut request = take(this.request);
        let finish = take(this.admission).forward(&mut request);
        Poll::Ready(Ok(Waited::Forward(request, finish)))
    }
}

impl<Svc, S, B, R> Future for ResponseFuture<Svc, S, B>
where
    Svc: Service<Request<B>, Response = Response<R>>,
    S: Store,
{
    type Output = Result<Response<ResponseBody<R>>, Svc::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProjection::Running { response, finish } => {
                    let response = ready!(response.poll(cx))?;
                    return Poll::Ready(Ok(core::mem::take(finish).apply_to(response)));
                }
                StateProjection::Responding { response } => {
                    return Poll::Ready(Ok(take(response).map(ResponseBody::refusal)));
                }
                StateProjection::Waiting { waiting } => match ready!(waiting.as_mut().poll(cx))? {
                    Waited::Forward(request, finish) => {
                        let response = waiting.as_mut().project().service.call(request);
                        State::Running { response, finish }
                    }
                    Waited::Respond(response) => State::Responding {
                        response: Some(response),
                    },
                },
            };
            state.set(next);
        }
    }
}

impl<Svc, S, B> fmt::Debug for ResponseFuture<Svc, S, B>
where
    Svc: Service<Request<B>>,
    S: Store,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
