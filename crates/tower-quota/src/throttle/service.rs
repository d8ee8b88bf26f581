use core::future::Future;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;

use tower_layer::Layer;
use tower_quota_core::{AsKey, Store};
use tower_service::Service;

use super::error::ThrottleError;
use super::layer::ThrottleLayer;
use super::reader::Reader;
use super::send::send;

/// A service behind a [`Limiter`](crate::Limiter), made by a [`ThrottleLayer`].
///
/// `poll_ready` takes no quota. `call` takes the turn.
///
/// # Panics
/// If a request waits outside a tokio runtime with a timer.
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

    /// Returns the inner service.
    #[must_use]
    pub const fn get_ref(&self) -> &Svc {
        &self.inner
    }

    /// Returns the inner service mutably.
    #[must_use]
    pub const fn get_mut(&mut self) -> &mut Svc {
        &mut self.inner
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

impl<Svc, R, S, K, C, H, Q, P> Service<R> for Throttle<Svc, ThrottleLayer<S, K, C, H, Q, P>>
where
    Svc: Service<R, Response: Send + 'static, Error: Send + 'static, Future: Send>,
    Svc: Clone + Send + 'static,
    R: Send + 'static,
    S: Store + Clone,
    K: Reader<R, Value: AsKey> + Send + Sync + 'static,
    C: Reader<R, Value = u64> + Send + Sync + 'static,
    H: Reader<Svc::Response, Value = Option<Duration>> + Send + Sync + 'static,
    Q: Reader<R, Value = Option<R>> + Send + Sync + 'static,
    P: Reader<Svc::Response, Value = Option<Duration>> + Send + Sync + 'static,
{
    type Response = Svc::Response;
    type Error = ThrottleError<Svc::Error>;
    type Future = ThrottleFuture<Svc::Response, Svc::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(ThrottleError::Inner)
    }

    fn call(&mut self, request: R) -> Self::Future {
        // The clone has not been polled ready.
        let clone = self.inner.clone();
        let ready = mem::replace(&mut self.inner, clone);
        let mut sending = Box::pin(send(Arc::clone(&self.layer), ready, request));
        // Take turns in the order of the calls. The first poll never completes.
        let _pending = sending
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        sending
    }
}

impl<Svc, S, K, C, H, Q, P> Layer<Svc> for ThrottleLayer<S, K, C, H, Q, P>
where
    Svc: Clone,
    Self: Clone,
{
    type Service = Throttle<Svc, Self>;

    fn layer(&self, inner: Svc) -> Self::Service {
        Throttle::new(inner, Arc::new(self.clone()))
    }
}
