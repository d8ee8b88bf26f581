//! The service that a throttling layer makes.

use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::{AsKey, Store};
use tower_service::Service;

use super::error::ThrottleError;
use super::future::{State, ThrottleFuture};
use super::gate::{Gate, Turning};
use super::reader::{Constant, Reader};

/// A service behind a [`Limiter`](crate::Limiter), made by a [`ThrottleLayer`](crate::ThrottleLayer).
///
/// It is ready when the inner service is, and takes no quota to become so. A request takes its turn when it is called.
/// One that waits or is refused gives the inner service's readiness back.
///
/// # Panics
/// When a request has to wait and is called outside a tokio runtime with a timer.
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
        Self { inner, gate, key, cost, heed }
    }

    /// Returns the inner service.
    #[must_use]
    pub const fn get_ref(&self) -> &Svc {
        &self.inner
    }

    /// Returns the inner service, to be changed.
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
        let mut turning: Turning<S> = Box::pin(Arc::clone(&self.gate).enter(key.clone(), cost));
        let future = |state| ThrottleFuture::new(state, Arc::clone(&self.gate), key, self.heed.clone());
        // Turns are taken in the order of the calls. One that is now goes to the service that was polled ready.
        let turn = turning.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(Ok(turn)) = turn {
            let response = self.inner.call(request);
            turn.spend();
            return future(State::running(response));
        }
        let service = self.inner.clone();
        // The service that was polled ready goes, with what it reserved: a permit may be shared with others.
        self.inner = service.clone();
        match turn {
            Poll::Ready(Err(error)) => future(State::failed(error)),
            _ => future(State::waiting(turning, service, request)),
        }
    }
}

impl<Svc: Clone, S, K: Clone, C: Clone, H: Clone> Clone for Throttle<Svc, S, K, C, H> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), Arc::clone(&self.gate), self.key.clone(), self.cost.clone(), self.heed.clone())
    }
}
