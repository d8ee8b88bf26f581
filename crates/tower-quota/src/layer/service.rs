use core::task::{Context, Poll};
use std::sync::Arc;

use http::{Request, Response};
use tower_quota_core::Store;
use tower_service::Service;

use super::body::ResponseBody;
use super::future::{ResponseFuture, State, wait};
use super::shared::LayerState;
use super::stage::Step;

/// A service behind a [`Policy`](crate::Policy), made by a [`RateLimitLayer`](crate::RateLimitLayer).
///
/// Errors only come from the inner service. Refusals and failures of the store are responses. `poll_ready` only asks
/// the inner service. Waiting and refused requests release the readiness. A waiting request later goes to a clone that
/// is polled ready again.
#[derive(Debug)]
pub struct RateLimit<Svc, S> {
    inner: Svc,
    shared: Arc<LayerState<S>>,
}

impl<Svc, S> RateLimit<Svc, S> {
    pub(super) const fn new(inner: Svc, shared: Arc<LayerState<S>>) -> Self {
        Self { inner, shared }
    }

    /// Returns a reference to the inner service.
    #[must_use]
    pub const fn get_ref(&self) -> &Svc {
        &self.inner
    }

    /// Returns the inner service, without the limits.
    #[must_use]
    pub fn into_inner(self) -> Svc {
        self.inner
    }
}

impl<Svc, S, B, R> Service<Request<B>> for RateLimit<Svc, S>
where
    Svc: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S: Store,
    B: Send + 'static,
{
    type Response = Response<ResponseBody<R>>;
    type Error = Svc::Error;
    type Future = ResponseFuture<Svc::Future, Svc::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline(never)] // If it were inlined, the request would have to be copied.
    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        // Build each future in place, because futures are large.
        match self.shared.begin(&mut request) {
            Step::Forward(admission) => {
                let finish = admission.forward(&mut request);
                ResponseFuture {
                    state: State::Running {
                        response: self.inner.call(request),
                        finish,
                    },
                }
            }
            Step::Respond(response) => {
                // Drop the ready service, because other requests may need its reserved permit.
                self.inner = self.inner.clone();
                ResponseFuture {
                    state: State::Responding {
                        response: Some(response),
                    },
                }
            }
            Step::Wait(stage) => {
                let service = self.inner.clone();
                // Drop the ready service. Its permit is for requests that do not wait.
                self.inner = service.clone();
                let shared = Arc::clone(&self.shared);
                ResponseFuture {
                    state: State::Waiting {
                        next: Box::pin(wait(shared, stage, service, request)),
                    },
                }
            }
        }
    }
}

impl<Svc: Clone, S> Clone for RateLimit<Svc, S> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            shared: Arc::clone(&self.shared),
        }
    }
}
