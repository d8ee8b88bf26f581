use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http::{Request, Response};
use tower::{Service, ServiceBuilder};
use tower_quota::{MemoryStore, Policy, RateLimitLayer};

struct Pages;

impl Service<Request<()>> for Pages {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::default()))
    }
}

fn main() {
    let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
    ServiceBuilder::new().layer(layer).service(Pages);
}
