//! The service.

use core::fmt;
use core::task::{Context, Poll};
use std::sync::Arc;

use http::{Request, Response};
use tollgate_core::Store;
use tower_service::Service;

use super::answer::at_once;
use super::before::{Before, Held};
use super::body::ResponseBody;
use super::future::ResponseFuture;
use super::gate::Gate;
use super::report::Report;
use super::verdict::{Case, Verdict};
use crate::answer::Reason;
use crate::plan::{Entry, Unasked};

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

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match self.gate.enter(&request) {
            Entry::Count => {}
            Entry::LookUp(looking_up) => {
                return ResponseFuture::before(Before::looking_up(looking_up, self.hold(request)));
            }
            Entry::Free => return ResponseFuture::uncounted(self.inner.call(request)),
            Entry::Blocked => return ResponseFuture::refused(self.gate.turn_away(Reason::Blocked, &request)),
        }
        let mut case = Case::new();
        let mut future = match self.gate.ask(&request, &mut case) {
            Ok(future) => future,
            Err(Unasked::NoLimit) => return ResponseFuture::uncounted(self.inner.call(request)),
            Err(Unasked::Missing(scope)) => {
                return ResponseFuture::refused(self.gate.turn_away(Reason::MissingKey(scope), &request));
            }
        };
        let Poll::Ready(mut answer) = at_once(&mut future) else {
            return ResponseFuture::before(Before::deciding(future, case, self.hold(request)));
        };
        match self.gate.judge(&mut answer, &mut case, &mut request) {
            // The service that is ready can be called here and now.
            Verdict::Pass(reservation) if !self.gate.reports(&answer, &case) => {
                ResponseFuture::running(self.inner.call(request), None, reservation)
            }
            Verdict::Pass(reservation) => {
                let response = self.inner.call(request);
                ResponseFuture::running(response, Some(Report::of(&self.gate, answer, case)), reservation)
            }
            Verdict::Wait(wait, turn) => {
                ResponseFuture::before(Before::waiting(wait, answer, case, turn, self.hold(request)))
            }
            Verdict::Refuse(response) => ResponseFuture::refused(response),
        }
    }
}

impl<Svc: Clone, S> RateLimit<Svc, S> {
    /// The service that is ready, for a request that goes to it later. A clone need not be ready: the one that was polled
    /// goes along, and the clone stays here to be polled next time.
    fn hold<B>(&mut self, request: Request<B>) -> Held<Svc, S, B> {
        let next = self.inner.clone();
        Held { gate: Arc::clone(&self.gate), service: core::mem::replace(&mut self.inner, next), request }
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
