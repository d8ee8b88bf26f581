//! The future of a throttled request.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use super::error::ThrottleError;

/// The future of a [`Throttle`](crate::Throttle).
///
/// If you drop it before the inner service is called, the turn of its request is refunded.
///
/// # Panics
/// When it is polled after it has completed.
#[must_use = "futures do nothing unless polled"]
pub struct ThrottleFuture<T, E> {
    running: Running<T, E>,
    /// The result, if the request ended when it was called.
    result: Option<Result<T, ThrottleError<E>>>,
}

type Running<T, E> = Pin<Box<dyn Future<Output = Result<T, ThrottleError<E>>> + Send>>;

impl<T, E> ThrottleFuture<T, E> {
    /// Runs a request up to its first wait, so that turns are taken in the order of the calls.
    pub(super) fn start(mut running: Running<T, E>) -> Self {
        let mut context = Context::from_waker(Waker::noop());
        let result = match running.as_mut().poll(&mut context) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        };
        Self { running, result }
    }
}

// The result is never pinned.
impl<T, E> Unpin for ThrottleFuture<T, E> {}

impl<T, E> Future for ThrottleFuture<T, E> {
    type Output = Result<T, ThrottleError<E>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.result.take() {
            Some(result) => Poll::Ready(result),
            None => self.running.as_mut().poll(cx),
        }
    }
}

impl<T, E> fmt::Debug for ThrottleFuture<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThrottleFuture").finish_non_exhaustive()
    }
}
