use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;

use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_quota_core::Store;
use tower_service::Service;

use super::admission::Finish;
use super::body::ResponseBody;
use super::shared::Shared;
use super::stage::{Stage, Step};
use crate::response::RefusalBody;

pin_project! {
    /// The future of [`RateLimit`](crate::RateLimit).
    ///
    /// If you drop the future while a request waits, the layer refunds all charges. [`settle`](crate::settle) describes
    /// the refunds at other times.
    ///
    /// # Panics
    /// Panics when you poll a completed future, or when waits and look-ups lack a tokio runtime with a timer.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F, E> {
        #[pin]
        pub(super) state: State<F, E>,
    }
}

pin_project! {
    #[project = StateProjection]
    pub(super) enum State<F, E> {
        // The wait is boxed, because every future reserves the space, and few requests wait.
        Waiting {
            next: Pin<Box<dyn Future<Output = Result<State<F, E>, E>> + Send>>,
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

/// Waits until the request is refused, or until a clone of the service is ready for it.
pub(super) async fn wait<Svc, S, B>(
    shared: Arc<Shared<S>>,
    mut stage: Stage<S>,
    mut service: Svc,
    mut request: Request<B>,
) -> Result<State<Svc::Future, Svc::Error>, Svc::Error>
where
    Svc: Service<Request<B>>,
    S: Store,
{
    let admission = loop {
        match shared.resume(stage, &mut request).await {
            Step::Forward(admission) => break admission,
            Step::Respond(response) => {
                return Ok(State::Responding {
                    response: Some(response),
                });
            }
            Step::Wait(next) => stage = next,
        }
    };
    poll_fn(|cx| service.poll_ready(cx)).await?;
    let finish = admission.forward(&mut request);
    Ok(State::Running {
        response: service.call(request),
        finish,
    })
}

impl<F, E, R> Future for ResponseFuture<F, E>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<ResponseBody<R>>, E>;

    #[expect(
        clippy::expect_used,
        reason = "documented: only a future polled after completion has no response"
    )]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProjection::Running { response, finish } => {
                    let response = ready!(response.poll(cx))?;
                    return Poll::Ready(Ok(core::mem::take(finish).apply_to(response)));
                }
                StateProjection::Responding { response } => {
                    let response = response.take().expect("polled after completion");
                    return Poll::Ready(Ok(response.map(ResponseBody::refusal)));
                }
                StateProjection::Waiting { next } => ready!(next.as_mut().poll(cx))?,
            };
            state.set(next);
        }
    }
}

impl<F, E> fmt::Debug for ResponseFuture<F, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
