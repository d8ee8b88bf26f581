//! The future of a throttled request: it waits for the turn, then for the inner service.

use core::convert::Infallible;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::sync::Arc;

use pin_project_lite::pin_project;
use tower_quota_core::{Key, Store, Turn};
use tower_service::Service;

use super::error::ThrottleError;
use super::gate::{Gate, PendingTurn};
use super::reader::Reader;

pin_project! {
    /// The future of a [`Throttle`](crate::Throttle).
    ///
    /// If it is dropped before the inner service is called, the turn of its request is refunded.
    ///
    /// # Panics
    /// When it is polled after it has completed.
    #[must_use = "futures do nothing unless polled"]
    pub struct ThrottleFuture<Svc, R, S, H>
    where
        Svc: Service<R>,
        S: Store,
        S: Clone,
    {
        #[pin]
        state: State<Svc, R, S, Svc::Future>,
        gate: Arc<Gate<S>>,
        key: Key<'static>,
        heed: H,
    }
}

pin_project! {
    /// The state of a request.
    #[project = StateProjection]
    pub(super) enum State<Svc, R, S, F>
    where
        S: Store,
        S: Clone,
    {
        Waiting {
            // None once it has returned.
            turning: Option<PendingTurn<S>>,
            turn: Option<Turn<S>>,
            // A clone that has not been polled ready.
            service: Svc,
            request: Option<R>,
        },
        Running {
            #[pin]
            response: F,
        },
        Failed {
            error: Option<ThrottleError<Infallible>>,
        },
    }
}

impl<Svc, R, S: Store + Clone, F> State<Svc, R, S, F> {
    pub(super) const fn waiting(turning: PendingTurn<S>, service: Svc, request: R) -> Self {
        Self::Waiting {
            turning: Some(turning),
            turn: None,
            service,
            request: Some(request),
        }
    }

    pub(super) const fn running(response: F) -> Self {
        Self::Running { response }
    }

    pub(super) const fn failed(error: ThrottleError<Infallible>) -> Self {
        Self::Failed { error: Some(error) }
    }
}

impl<Svc: Service<R>, R, S: Store + Clone, H> ThrottleFuture<Svc, R, S, H> {
    pub(super) const fn new(
        state: State<Svc, R, S, Svc::Future>,
        gate: Arc<Gate<S>>,
        key: Key<'static>,
        heed: H,
    ) -> Self {
        Self {
            state,
            gate,
            key,
            heed,
        }
    }
}

impl<Svc, R, S, H> Future for ThrottleFuture<Svc, R, S, H>
where
    Svc: Service<R>,
    S: Store + Clone,
    H: Reader<Svc::Response, Value = Option<Duration>>,
{
    type Output = Result<Svc::Response, ThrottleError<Svc::Error>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProjection::Waiting {
                    turning,
                    turn,
                    service,
                    request,
                } => {
                    if let Some(pending) = turning {
                        *turn = ready!(pending.as_mut().poll(cx))
                            .map_err(ThrottleError::into_service_error)?;
                        *turning = None;
                    }
                    ready!(service.poll_ready(cx)).map_err(ThrottleError::Inner)?;
                    let response = service.call(take(request));
                    drop(turn.take().map(Turn::spend));
                    this.state.set(State::running(response));
                }
                StateProjection::Running { response } => {
                    let response = ready!(response.poll(cx)).map_err(ThrottleError::Inner)?;
                    if let Some(pause) = this.heed.read(&response) {
                        this.gate.push_back(this.key.clone(), pause);
                    }
                    return Poll::Ready(Ok(response));
                }
                StateProjection::Failed { error } => {
                    return Poll::Ready(Err(take(error).into_service_error()));
                }
            }
        }
    }
}

#[expect(
    clippy::expect_used,
    reason = "documented: only a future polled after completion finds a slot empty"
)]
fn take<T>(slot: &mut Option<T>) -> T {
    slot.take().expect("polled after completion")
}

impl<Svc: Service<R>, R, S: Store + Clone, H> fmt::Debug for ThrottleFuture<Svc, R, S, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Waiting {
                turning: Some(_), ..
            } => "waiting",
            State::Waiting { .. } => "becoming ready",
            State::Running { .. } => "running",
            State::Failed { .. } => "throttled",
        };
        write!(f, "ThrottleFuture({state})")
    }
}
