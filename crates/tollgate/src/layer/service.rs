//! The service.

use core::fmt;
use core::task::{Context, Poll};
use std::sync::Arc;

use http::{Request, Response};
use tollgate_core::Store;
use tower_service::Service;

use super::body::ResponseBody;
use super::future::ResponseFuture;
use super::gate::Gate;
use crate::answer::Reason;
use crate::plan::Asked;

/// A service behind a [`Policy`](crate::Policy), made by a [`RateLimitLayer`](crate::RateLimitLayer).
///
/// Its errors are those of the inner service: refusals and failures of the store are responses. Being ready is being
/// ready to the inner service; it takes no quota.
pub struct RateLimit<Svc, S> {
    inner: Svc,
    gate: Arc<Gate<S>>,
}

impl<Svc, S> RateLimit<Svc, S> {
    pub(super) const fn new(inner: Svc, gate: Arc<Gate<S>>) -> Self {
        Self { inner, gate }
    }

    /// The inner service.
    #[must_use]
    pub const fn get_ref(&self) -> &Svc {
        &self.inner
    }

    /// The inner service.
    #[must_use]
    pub const fn get_mut(&mut self) -> &mut Svc {
        &mut self.inner
    }

    /// The inner service, without its limits.
    #[must_use]
    pub fn into_inner(self) -> Svc {
        self.inner
    }
}

impl<Svc, S, B, R> Service<Request<B>> for RateLimit<Svc, S>
where
    Svc: Service<Request<B>, Response = Response<R>> + Clone,
    S: Store,
{
    type Response = Response<ResponseBody<R>>;
    type Error = Svc::Error;
    type Future = ResponseFuture<Svc, S, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let gate = Arc::clone(&self.gate);
        match gate.ask(&request) {
            Asked::Nothing => ResponseFuture::running(gate, self.inner.call(request)),
            Asked::Missing(scope) => {
                let response = gate.refuse(Reason::MissingKey(scope), &request);
                ResponseFuture::refused(gate, response)
            }
            Asked::Charged(answer) => {
                // The inner service is called after the answer. A clone need not be ready: the one that was polled
                // goes along, and the clone stays here to be polled next time.
                let next = self.inner.clone();
                let ready = core::mem::replace(&mut self.inner, next);
                ResponseFuture::deciding(gate, answer, ready, request)
            }
        }
    }
}

impl<Svc: Clone, S> Clone for RateLimit<Svc, S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), gate: Arc::clone(&self.gate) }
    }
}

impl<Svc: fmt::Debug, S: fmt::Debug> fmt::Debug for RateLimit<Svc, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("inner", &self.inner).field("gate", &self.gate).finish()
    }
}
