//! Tests that other requests proceed while one waits, and that a refusal releases inner permits.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tower::buffer::BufferLayer;
use tower::limit::{ConcurrencyLimitLayer, GlobalConcurrencyLimitLayer};
use tower::load_shed::LoadShedLayer;
use tower::steer::Steer;
use tower::util::BoxCloneService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};
use tower_http::map_response_body::MapResponseBodyLayer;
use tower_quota::{Limit, Quota, key};

use crate::each_layer::LONG;
use crate::handler::Handler;
use crate::limited::{Limited, limited, limited_by, three_per_minute};
use crate::server::{Server, assert_admitted, assert_refused, within};

/// Returns a limit that lets each client's requests proceed one hour apart.
fn hourly_turns() -> Limit {
    Limit::new("hourly_turns", Quota::per_hour(1).burst(10).leaky_bucket())
        .by(key::header("x-client"))
        .max_wait(2 * LONG)
}

fn request_of(client: &str) -> http::request::Builder {
    Request::get("/").header("x-client", client)
}

/// Returns the status of another client's request while a client's second waits.
async fn status_beside_waiting<S, B>(
    is_slow: bool,
    stack: impl FnOnce(Limited, Handler) -> S,
) -> u16
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (wait_begins, mut waits) = mpsc::unbounded_channel();
    let limited = limited_by(hourly_turns(), is_slow).on_decision(move |decided| {
        if !decided.wait().is_zero() {
            wait_begins.send(()).unwrap();
        }
    });
    let server = Arc::new(Server::start(stack(limited, Handler::default())).await);
    assert_eq!(server.send(request_of("one")).await.status(), 200);
    let same = Arc::clone(&server);
    let second = tokio::spawn(async move { same.send(request_of("one")).await });
    within(waits.recv()).await.unwrap();
    let status = server.send(request_of("other")).await.status().as_u16();
    assert!(!second.is_finished());
    second.abort();
    status
}

/// Declares tests of stacks in which other requests must proceed while one waits.
///
/// Each stack is tested with cloned services, and with one instance that all requests share.
macro_rules! others_proceed {
    ($($name:ident: $inner:expr;)*) => {
        $(#[tokio::test]
        async fn $name() {
            for is_slow in [false, true] {
                let alone = |limited, handler| ServiceBuilder::new().layer(limited).layer($inner).service(handler);
                assert_eq!(status_beside_waiting(is_slow, alone).await, 200);
                let shared = |limited, handler| {
                    ServiceBuilder::new().layer(BufferLayer::new(8)).layer(limited).layer($inner).service(handler)
                };
                assert_eq!(status_beside_waiting(is_slow, shared).await, 200);
            }
        })*
    };
}

others_proceed! {
    others_proceed_past_inner_buffer: BufferLayer::new(1);
    others_proceed_past_inner_concurrency_limit: ConcurrencyLimitLayer::new(1);
    others_proceed_past_inner_load_shed: (LoadShedLayer::new(), ConcurrencyLimitLayer::new(1));
    others_proceed_past_inner_buffered_limit: (BufferLayer::new(1), ConcurrencyLimitLayer::new(1));
}

#[tokio::test]
async fn outer_concurrency_limit_counts_waiting_request() {
    let stack = |limited, handler| {
        ServiceBuilder::new()
            .layer(LoadShedLayer::new())
            .layer(ConcurrencyLimitLayer::new(1))
            .layer(limited)
            .service(handler)
    };
    assert_eq!(status_beside_waiting(false, stack).await, 503);
}

fn empty(path: &str) -> Request<Empty<Bytes>> {
    Request::get(path).body(Empty::new()).unwrap()
}

#[tokio::test]
async fn refusal_returns_inner_permit() {
    for is_slow in [false, true] {
        let permit = GlobalConcurrencyLimitLayer::new(1);
        // A buffer keeps its service, and with it what the service has reserved.
        let limited = ServiceBuilder::new()
            .buffer(8)
            .layer(limited_by(three_per_minute(), is_slow))
            .layer(permit.clone())
            .service(Handler::default());
        let other = ServiceBuilder::new()
            .layer(permit)
            .service(Handler::default());
        for expected in [200, 200, 200, 429] {
            assert_eq!(
                within(limited.clone().oneshot(empty("/")))
                    .await
                    .unwrap()
                    .status(),
                expected
            );
        }
        assert_eq!(
            within(other.oneshot(empty("/"))).await.unwrap().status(),
            200
        );
    }
}

fn by_path<S>(request: &Request<Incoming>, _: &[S]) -> usize {
    usize::from(request.uri().path() != "/limited")
}

#[tokio::test]
async fn steered_services_are_limited_alone_and_together() {
    // Services that are steered to have one type: bodies and services are boxed.
    let alone = ServiceBuilder::new()
        .layer(MapResponseBodyLayer::new(Body::new))
        .layer(limited());
    let plain = ServiceBuilder::new().layer(MapResponseBodyLayer::new(Body::new));
    let services = vec![
        BoxCloneService::new(alone.service(Handler::default())),
        BoxCloneService::new(plain.service(Handler::default())),
    ];
    let server = Server::start(Steer::new(services, by_path)).await;
    assert_eq!(server.statuses("/limited").await, [200, 200, 200, 429]);
    assert_eq!(server.statuses("/").await, [200; 4]);

    let steer = Steer::new(vec![Handler::default(), Handler::default()], by_path);
    let server = Server::start(ServiceBuilder::new().layer(limited()).service(steer)).await;
    assert_admitted(&server.get("/limited").await, "2");
    assert_refused(&server.refused(|| Request::get("/")).await);
}
