//! The service that the throttle layer makes.

use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::{AsKey, Store, Turn};
use tower_service::Service;

use super::error::ThrottleError;
use super::future::{State, ThrottleFuture};
use super::gate::{Gate, PendingTurn};
use super::reader::{Constant, Reader};

/// A service behind a [`Limiter`](crate::Limiter), made by a [`ThrottleLayer`](crate::ThrottleLayer).
///
/// It is ready when the inner service is, and `poll_ready` takes no quota. A request takes its turn in `call`. If it
/// waits or is refused, it releases the inner service's readiness.
///
/// # Panics
/// When a request has to wait outside a tokio runtime with a timer.
#[derive(Debug)]
pub struct Throttle<Svc, S, K, C = Constant<u64>, H = Constant<Option<Duration>>> {
    inner: Svc,
    gate: Arc<Gate<S>>,
    key: K,
    cost: C,
    heed: H,
}

impl<Svc, S, K, C, H> Throttle<Svc, S, K, C, H> {
    pub(super) const fn new(inner: Svc, gate: Arc<Gate<S>>, key: K, cost: C, heed: H) -> Self {
        Self {
            inner,
            gate,
            key,
            cost,
            heed,
        }
    }

    /// Returns a reference to the inner service.
    #[must_use]
    pub const fn get_ref(&self) -> &Svc {
        &self.inner
    }

    /// Returns a mutable reference to the inner service.
    #[must_use]
    pub const fn get_mut(&mut self) -> &mut Svc {
        &mut self.inner
    }

    /// Returns the inner service, without its limits.
    #[must_use]
    pub fn into_inner(self) -> Svc {
        self.inner
    }
}

impl<Svc, R, S, K, C, H> Service<R> for Throttle<Svc, S, K, C, H>
where
    Svc: Service<R> + Clone,
    S: Store + Clone,
    K: Reader<R, Value: AsKey>,
    C: Reader<R, Value = u64>,
    H: Reader<Svc::Response, Value = Option<Duration>> + Clone,
{
    type Response = Svc::Response;
    type Error = ThrottleError<Svc::Error>;
    type Future = ThrottleFuture<Svc, R, S, H>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(ThrottleError::Inner)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let key = self.gate.limiter.key_of(&self.key.read(&request));
        let cost = self.cost.read(&request);
        let mut turning: PendingTurn<S> = Box::pin(Arc::clone(&self.gate).enter(key.clone(), cost));
        let future =
            |state| ThrottleFuture::new(state, Arc::clone(&self.gate), key, self.heed.clone());
        // Turns are taken in the order of the calls. If the turn is now, use the service that was polled ready.
        let turn = turning
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(Ok(turn)) = turn {
            let response = self.inner.call(request);
            drop(turn.map(Turn::spend));
            return future(State::running(response));
        }
        let service = self.inner.clone();
        // Drop the service that was polled ready, with its reserved permit, which other requests may need.
        self.inner = service.clone();
        match turn {
            Poll::Ready(Err(error)) => future(State::failed(error)),
            _ => future(State::waiting(turning, service, request)),
        }
    }
}

impl<Svc: Clone, S, K: Clone, C: Clone, H: Clone> Clone for Throttle<Svc, S, K, C, H> {
    fn clone(&self) -> Self {
        Self::new(
            self.inner.clone(),
            Arc::clone(&self.gate),
            self.key.clone(),
            self.cost.clone(),
            self.heed.clone(),
        )
    }
}
