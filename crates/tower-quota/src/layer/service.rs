//! The service.

use core::fmt;
use core::task::{Context, Poll};
use std::sync::Arc;

use http::{Request, Response};
use tower_quota_core::Store;
use tower_service::Service;

use super::answer::{Asked, Further};
use super::before::{Before, Held};
use super::body::ResponseBody;
use super::future::ResponseFuture;
use super::gate::Gate;
use super::report::Told;
use super::verdict::Verdict;
use crate::plan::{Entry, Unasked};
use crate::response::Reason;

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

    #[inline(never)] // In a caller that holds the request it would have to be copied to get here.
    fn call(&mut self, request: Request<B>) -> Self::Future {
        match self.gate.enter(&request) {
            None => {}
            Some(Entry::LookUp(looking_up)) => {
                return ResponseFuture::before(Before::looking_up(looking_up, self.hold(request)));
            }
            Some(Entry::Free) => return ResponseFuture::untold(self.inner.call(request)),
            Some(Entry::Blocked) => return ResponseFuture::refused(self.gate.turn_away(Reason::Blocked, &request)),
        }
        let mut further = Further::Nothing;
        match self.gate.ask(&request, &mut further) {
            // The service that is ready can be called here and now.
            Ok(Asked::Pass) => ResponseFuture::untold(self.inner.call(request)),
            Ok(Asked::Further) => self.go_on(further, request),
            Err(Unasked::NoLimit) => ResponseFuture::untold(self.inner.call(request)),
            Err(Unasked::Missing(scope)) => {
                ResponseFuture::refused(self.gate.turn_away(Reason::MissingKey(scope), &request))
            }
        }
    }
}

impl<Svc, S> RateLimit<Svc, S>
where
    Svc: Clone,
    S: Store,
{
    /// The response to a request about which there is more to do.
    fn go_on<B>(&mut self, further: Further<S>, mut request: Request<B>) -> ResponseFuture<Svc, S, B>
    where
        Svc: Service<Request<B>>,
    {
        match further {
            Further::Nothing => ResponseFuture::untold(self.inner.call(request)),
            Further::Answered(mut answer, mut case) => match self.gate.judge(&mut answer, &mut case, &mut request) {
                Verdict::Pass(reservation) => {
                    let told = Told::of(&self.gate, answer, case);
                    ResponseFuture::running(self.inner.call(request), told, reservation)
                }
                Verdict::Wait(wait, turn) => {
                    ResponseFuture::before(Before::waiting(wait, answer, case, turn, self.hold(request)))
                }
                Verdict::Refuse(response) => ResponseFuture::refused(response),
            },
            Further::Pending(answer, case) => {
                ResponseFuture::before(Before::deciding(answer, case, self.hold(request)))
            }
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
