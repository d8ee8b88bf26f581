//! The `Accept` header, by which the form of refusals is negotiated.
#![no_main]

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use http::{Request, Response, StatusCode};
use libfuzzer_sys::fuzz_target;
use tower_layer::Layer;
use tower_quota::{MemoryStore, Policy, RateLimitLayer};
use tower_quota_fuzz::request;
use tower_service::Service;

/// The inner service, which no request reaches.
#[derive(Clone)]
struct Unreachable;

impl Service<Request<()>> for Unreachable {
    type Response = Response<()>;
    type Error = std::convert::Infallible;
    type Future = std::future::Ready<Result<Response<()>, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        unreachable!("every request is blocked")
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some(request) = request("accept", bytes) else {
        return;
    };
    let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new().block(|_| true));
    let answer =
        pin!(layer.layer(Unreachable).call(request)).poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(Ok(refused)) = answer else {
        panic!("a blocked request waits for nothing")
    };
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let kind = refused.headers()["content-type"]
        .to_str()
        .expect("a media type");
    assert!(
        [
            "application/problem+json",
            "text/plain; charset=utf-8",
            "text/html; charset=utf-8"
        ]
        .contains(&kind)
    );
});
