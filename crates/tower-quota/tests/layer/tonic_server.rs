//! A tonic server, called over a real socket.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::task::{Context, Poll};

use http::{HeaderMap, Request, Response};
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Status};
use tower::Service;
use tower_quota::{MissingKey, RateLimitLayer, Store, key};

use crate::shared::{answer_to, per_minute, policy_of, stopped_store};

/// A service that answers every call with an empty success.
#[derive(Clone)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "echo.Echo";
}

impl Service<Request<Body>> for Echo {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Ok(Status::ok("").into_http()))
    }
}

/// A client of a server on a free port, behind a layer.
pub(crate) struct Client {
    channel: Channel,
    address: SocketAddr,
}

impl Client {
    pub(crate) async fn of<S: Store + Clone>(layer: RateLimitLayer<S>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(
            Server::builder()
                .layer(layer)
                .add_service(Echo)
                .serve_with_incoming(TcpIncoming::from(listener)),
        );
        let channel = Endpoint::new(format!("http://{address}"))
            .unwrap()
            .connect()
            .await
            .unwrap();
        Self { channel, address }
    }

    /// Sends one call, and returns the headers of the response.
    pub(crate) async fn call(&self) -> HeaderMap {
        let request = Request::post(format!("http://{}/echo.Echo/Say", self.address));
        let request = request
            .header("content-type", "application/grpc")
            .body(Body::empty())
            .unwrap();
        answer_to(&self.channel, request)
            .await
            .into_parts()
            .0
            .headers
    }
}

#[tokio::test]
async fn tonic_client_gets_refusal_as_status() {
    // If the peer's address is unknown, the call is an invalid argument.
    let limit = per_minute("once", 1)
        .by(key::client_ip())
        .when_missing(MissingKey::Refuse);
    let store = stopped_store();
    let client = Client::of(RateLimitLayer::new(store, policy_of(limit))).await;

    let admitted = client.call().await;
    assert_eq!(Status::from_header_map(&admitted).unwrap().code(), Code::Ok);
    assert_eq!(admitted["ratelimit"], "\"once\";r=0;t=60");

    let refused = client.call().await;
    let status = Status::from_header_map(&refused).unwrap();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(
        status.message(),
        "Over the limit \"once\": retry in 60 seconds."
    );
    assert_eq!(refused["grpc-retry-pushback-ms"], "60000");
    assert_eq!(refused["retry-after"], "60");
    assert_eq!(refused["ratelimit"], "\"once\";r=0;t=60");
}
