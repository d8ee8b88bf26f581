use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;

use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::sync::oneshot::Receiver;
use tokio::time::timeout;
use tower_quota::RequestHead;
use tower_quota::response::RefusalBody;
use tower_service::Service;

use super::body::ResponseBody;
use super::outcome::place_of_body;
use crate::cause::Cause;
use crate::gate::{Gate, Place};
use crate::priority::Priority;
use crate::settings::Hold;

pin_project! {
    /// The future of a [`ShedService`](crate::ShedService). If you drop the future, the place is free again.
    ///
    /// # Panics
    /// Panics when you poll a completed future, or when a request waits without a tokio runtime with a timer.
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
            place: Option<Place>,
            hold: Hold,
        },
        Refused {
            response: Option<Response<RefusalBody>>,
        },
    }
}

impl<F, E> From<State<F, E>> for ResponseFuture<F, E> {
    fn from(state: State<F, E>) -> Self {
        Self { state }
    }
}

/// Waits for a place, and then until a clone of the service is ready.
pub(super) async fn wait<Svc, B>(
    gate: Arc<Gate>,
    priority: Priority,
    hold: Hold,
    mut receiver: Receiver<Place>,
    mut service: Svc,
    request: Request<B>,
) -> Result<State<Svc::Future, Svc::Error>, Svc::Error>
where
    Svc: Service<Request<B>>,
{
    let (_, max_wait) = gate.settings.queue;
    let in_time = timeout(max_wait, &mut receiver).await;
    let now = gate.clock.now();
    let place = match in_time {
        Ok(place) => place.ok(),
        Err(_) => {
            gate.serve_after_bodies(now);
            receiver.try_recv().ok()
        }
    };
    let Some(place) = place else {
        let response = gate.respond(now, priority, Cause::Queue, &RequestHead::of(&request));
        return Ok(State::Refused {
            response: Some(response),
        });
    };
    poll_fn(|cx| service.poll_ready(cx)).await?;
    Ok(State::Running {
        response: service.call(request),
        place: Some(place),
        hold,
    })
}

impl<F, E, B> Future for ResponseFuture<F, E>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
{
    type Output = Result<Response<ResponseBody<B>>, E>;

    #[expect(
        clippy::expect_used,
        reason = "documented: only a future polled after completion has no response"
    )]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProjection::Running {
                    response,
                    place,
                    hold,
                } => {
                    let answer = ready!(response.poll(cx));
                    let place = place.take();
                    let place = place.and_then(|place| place_of_body(place, *hold, &answer));
                    return Poll::Ready(
                        answer
                            .map(|response| response.map(|body| ResponseBody::inner(body, place))),
                    );
                }
                StateProjection::Refused { response } => {
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
        f.write_str("ResponseFuture")
    }
}
