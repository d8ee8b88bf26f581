//! A service that does nothing, and its requests.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response};
use tower::Service;

/// A service of any type that answers without waiting.
pub(crate) trait Answers {
    /// Sends a request. Returns whether the answer was a success.
    fn admits(&mut self, request: Request<Body>) -> bool;
}

/// A tower service as `Answers`.
pub(crate) struct Answering<S>(pub(crate) S);

impl<S, B> Answers for Answering<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible>,
{
    fn admits(&mut self, request: Request<Body>) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        if self.0.poll_ready(&mut context).is_pending() {
            return false;
        }
        match pin!(self.0.call(request)).poll(&mut context) {
            Poll::Ready(Ok(response)) => response.status().is_success(),
            Poll::Pending => false,
        }
    }
}

/// Answers with an empty body.
#[derive(Clone)]
pub(crate) struct Trivial;

impl Service<Request<Body>> for Trivial {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Ok(Response::new(Body::empty())))
    }
}

/// Creates a request as axum passes it on, with the peer's address attached.
pub(crate) fn request() -> Request<Body> {
    let mut request = Request::new(Body::empty());
    request
        .extensions_mut()
        .insert(ConnectInfo(SocketAddr::from(([192, 0, 2, 1], 4_321))));
    request
}
