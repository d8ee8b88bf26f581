use core::future::Future;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

use tower_layer::Layer;
use tower_quota_core::Store;
use tower_service::Service;

use super::error::ThrottleError;
use super::layer::ThrottleLayer;
use super::send::send;

/// A service behind a [`Limiter`](crate::Limiter), made by a [`ThrottleLayer`].
///
/// `poll_ready` takes no quota. `call` takes the turn.
///
/// # Panics
/// Panics if a request waits outside a tokio runtime with a timer.
#[derive(Debug)]
pub struct Throttle<Svc, L> {
    inner: Svc,
    layer: Arc<L>,
}

/// The future of a [`Throttle`]. Dropping the waiting future refunds the turn.
pub type ThrottleFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, ThrottleError<E>>> + Send>>;

impl<Svc, L> Throttle<Svc, L> {
    pub(super) const fn new(inner: Svc, layer: Arc<L>) -> Self {
        Self { inner, layer }
    }

    /// Returns the inner service, without limits.
    #[must_use]
    pub fn into_inner(self) -> Svc {
        self.inner
    }
}

impl<Svc: Clone, L> Clone for Throttle<Svc, L> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), Arc::clone(&self.layer))
    }
}

impl<Svc, R, S, T> Service<R> for Throttle<Svc, ThrottleLayer<S, R, T>>
where
    Svc: Service<R, Response = T, Error: Send + 'static, Future: Send>,
    Svc: Clone + Send + 'static,
    R: Send + 'static,
    T: Send + 'static,
    S: Store + Clone,
{
    type Response = T;
    type Error = ThrottleError<Svc::Error>;
    type Future = ThrottleFuture<T, Svc::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(ThrottleError::Inner)
    }

    fn call(&mut self, request: R) -> Self::Future {
        // Call the ready service, and keep the clone.
        let clone = self.inner.clone();
        let ready = mem::replace(&mut self.inner, clone);
        let mut sending = Box::pin(send(Arc::clone(&self.layer), ready, request));
        // Poll once here, so that turns follow the order of the calls. This first poll never
        // completes.
        let _pending = sending
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        sending
    }
}

impl<Svc: Clone, S: Store + Clone, R, T> Layer<Svc> for ThrottleLayer<S, R, T> {
    type Service = Throttle<Svc, Self>;

    fn layer(&self, inner: Svc) -> Self::Service {
        let mut layer = self.clone();
        let failures = Arc::new(layer.gate.failures.clone());
        layer.gate.limiter = layer.gate.limiter.on_hold_events(failures);
        Throttle::new(inner, Arc::new(layer))
    }
}
