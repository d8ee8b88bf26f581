//! Calls that are settled by their gRPC status, over real sockets.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::task::{Context, Poll};

use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::BodyExt;
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Status};
use tower::Service;
use tower_quota::settle::{only_failures, only_successes};
use tower_quota::{Limit, Quota, RateLimitLayer};

use crate::fixture::{ScriptedStore, StoreControl};
use crate::settling_by_rule::Frames;
use crate::shared::{answer_to, per_hour, policy_of};

/// A service that answers with an empty message; the status is `OK` only for the method `Say`.
#[derive(Clone)]
struct Talk;

impl NamedService for Talk {
    const NAME: &'static str = "talk.Talk";
}

impl Service<Request<Body>> for Talk {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let code = if request.uri().path() == "/talk.Talk/Say" {
            "0"
        } else {
            "16"
        };
        let trailers = HeaderMap::from_iter([(
            "grpc-status".parse().unwrap(),
            HeaderValue::from_static(code),
        )]);
        let body = Frames {
            data: vec!["\0\0\0\0\0"],
            trailers: Some(trailers),
            ..Frames::default()
        };
        ready(Ok(Response::builder()
            .header("content-type", "application/grpc")
            .body(Body::new(body))
            .unwrap()))
    }
}

async fn served(store: &ScriptedStore, limit: Limit) -> (Channel, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let layer = RateLimitLayer::new(store.clone(), policy_of(limit));
    tokio::spawn(
        Server::builder()
            .layer(layer)
            .add_service(Talk)
            .serve_with_incoming(TcpIncoming::from(listener)),
    );
    (
        Endpoint::new(format!("http://{address}"))
            .unwrap()
            .connect()
            .await
            .unwrap(),
        address,
    )
}

/// Returns the status in the trailers of a call.
async fn call((channel, address): &(Channel, SocketAddr), method: &str) -> Code {
    let request = Request::post(format!("http://{address}/talk.Talk/{method}"));
    let request = request
        .header("content-type", "application/grpc")
        .body(Body::empty())
        .unwrap();
    let response = answer_to(channel, request).await;
    let body = response.into_body().collect().await.unwrap();
    Status::from_header_map(body.trailers().unwrap())
        .unwrap()
        .code()
}

#[tokio::test]
async fn grpc_trailers_are_the_cost() {
    let limit = || per_hour("calls", 100).cost(10);
    let (failures, successes) = (ScriptedStore::new(), ScriptedStore::new());
    let guarded = served(&failures, limit().settle(only_failures())).await;
    let counted = served(&successes, limit().settle(only_successes())).await;
    for server in [&guarded, &counted] {
        assert_eq!(call(server, "Say").await, Code::Ok);
        assert_eq!(call(server, "Fail").await, Code::Unauthenticated);
        assert_eq!(call(server, "Fail").await, Code::Unauthenticated);
    }
    failures.until_settled(&[("refund", &[10])]).await;
    successes
        .until_settled(&[("refund", &[10]), ("refund", &[10])])
        .await;
    assert_eq!(
        (
            failures.left("calls", Quota::per_hour(100)),
            successes.left("calls", Quota::per_hour(100))
        ),
        (80, 90)
    );
}

#[tokio::test]
async fn grpc_stream_holds_until_trailers() {
    let store = ScriptedStore::new();
    let server = served(&store, Limit::new("calls", Quota::concurrent(1))).await;
    for method in ["Say", "Fail", "Say"] {
        call(&server, method).await;
    }
    let released: (&'static str, &[u64]) = ("refund", &[1]);
    store.until_settled(&[released; 3]).await;
}
