use core::task::{Context, Poll};
use std::sync::Arc;

use http::{Request, Response};
use http_body::Body;
use tower_quota::RequestHead;
use tower_service::Service;

use super::body::ResponseBody;
use super::future::{ResponseFuture, State, wait};
use crate::gate::{Entry, Gate};
use crate::settings::Hold;

/// A service behind a limit of requests in progress, made by a [`ShedLayer`](crate::ShedLayer).
///
/// Errors only come from the inner service, because refusals are responses. `poll_ready` only asks the inner service.
/// Waiting and refused requests release the readiness.
#[derive(Debug)]
pub struct ShedService<Svc> {
    inner: Svc,
    gate: Arc<Gate>,
}

impl<Svc> ShedService<Svc> {
    pub(super) const fn new(inner: Svc, gate: Arc<Gate>) -> Self {
        Self { inner, gate }
    }
}

impl<Svc, B, R> Service<Request<B>> for ShedService<Svc>
where
    Svc: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    B: Send + 'static,
    R: Body,
{
    type Response = Response<ResponseBody<R>>;
    type Error = Svc::Error;
    type Future = ResponseFuture<Svc::Future, Svc::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let head = RequestHead::of(&request);
        let hold = self.gate.settings.hold_of(&head);
        let now = self.gate.clock.now();
        let entry = (hold != Hold::Nothing).then(|| self.gate.arrive(now, &head));
        let place = match entry {
            None => None,
            Some(Entry::Place(place)) => Some(place),
            Some(Entry::Refused(priority, cause)) => {
                let response = Some(self.gate.respond(now, priority, cause, &head));
                // Drop the ready service, because other requests may need its reserved permit.
                self.inner = self.inner.clone();
                return State::Refused { response }.into();
            }
            Some(Entry::Wait(priority, receiver)) => {
                let service = self.inner.clone();
                // Drop the ready service. Its permit is for requests that do not wait.
                self.inner = service.clone();
                let gate = Arc::clone(&self.gate);
                let next = Box::pin(wait(gate, priority, hold, receiver, service, request));
                return State::Waiting { next }.into();
            }
        };
        let response = self.inner.call(request);
        State::Running {
            response,
            place,
            hold,
        }
        .into()
    }
}

impl<Svc: Clone> Clone for ShedService<Svc> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            gate: Arc::clone(&self.gate),
        }
    }
}
