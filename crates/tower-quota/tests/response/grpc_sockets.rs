//! Every kind of call over real sockets: streams, gRPC-Web with its translator, HTTP and gRPC.

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::{Pending, pending};
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::service::Routes;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_types::StatusExt;
use tonic_web::GrpcWebLayer;
use tower::ServiceExt;
use tower_quota::{MemoryStore, MissingKey, Protocol, RateLimitLayer, key};

use crate::shared::{per_minute, policy_of, stopped_layer};

/// Returns a layer that admits one call a minute.
fn layer() -> RateLimitLayer<MemoryStore> {
    let policy = policy_of(
        per_minute("once", 1)
            .by(key::header("x-api-key"))
            .when_missing(MissingKey::ShareOneCounter),
    );
    stopped_layer(policy)
}

/// Returns this layer for a service with both protocols.
fn both() -> RateLimitLayer<MemoryStore> {
    layer().protocol(Protocol::Both)
}

/// Returns the standard health service, which has a streaming call.
fn health() -> Router {
    Routes::new(tonic_health::server::health_reporter().1).into_axum_router()
}

async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async { axum::serve(listener, app).await.unwrap() });
    address
}

async fn connect(address: SocketAddr) -> Channel {
    Endpoint::new(format!("http://{address}"))
        .unwrap()
        .connect()
        .await
        .unwrap()
}

fn assert_refusal(status: &Status) {
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(
        status.message(),
        "Over the limit \"once\": retry in 60 seconds."
    );
    let details = status.get_error_details();
    assert_eq!(
        details.retry_info().unwrap().retry_delay.unwrap().as_secs(),
        60
    );
    assert_eq!(
        details.quota_failure().unwrap().violations[0].quota_id,
        "once"
    );
    assert_eq!(status.metadata().get("retry-after").unwrap(), "60");
    assert_eq!(
        status.metadata().get("ratelimit").unwrap(),
        "\"once\";r=0;t=60"
    );
}

#[tokio::test]
async fn stream_is_one_call() {
    let mut client = HealthClient::new(connect(serve(health().layer(both())).await).await);
    let admitted = client.watch(HealthCheckRequest::default()).await.unwrap();
    assert_eq!(
        admitted.metadata().get("ratelimit").unwrap(),
        "\"once\";r=0;t=60"
    );
    // The stream continues, although the limit refuses the next call.
    let mut messages = admitted.into_inner();
    assert!(messages.message().await.unwrap().is_some());
    assert_refusal(
        &client
            .watch(HealthCheckRequest::default())
            .await
            .unwrap_err(),
    );
    assert_refusal(
        &client
            .check(HealthCheckRequest::default())
            .await
            .unwrap_err(),
    );
}

#[tokio::test]
async fn streaming_client_is_refused_at_once() {
    let channel = connect(serve(health().layer(both())).await).await;
    HealthClient::new(channel.clone())
        .check(HealthCheckRequest::default())
        .await
        .unwrap();

    let codec = tonic_prost::ProstCodec::<HealthCheckRequest, HealthCheckResponse>::default;
    let path = || http::uri::PathAndQuery::from_static("/grpc.health.v1.Health/Watch");
    let endless = tonic::Request::<Pending<HealthCheckRequest>>::new;
    let mut client = Grpc::new(channel);
    client.ready().await.unwrap();
    assert_refusal(
        &client
            .streaming(endless(pending()), path(), codec())
            .await
            .unwrap_err(),
    );
    client.ready().await.unwrap();
    assert_refusal(
        &client
            .client_streaming(endless(pending()), path(), codec())
            .await
            .unwrap_err(),
    );
}

/// Returns the status and header lines of a gRPC-Web call over HTTP/1.1, in lower case.
async fn web_call(address: SocketAddr, content_type: &str) -> (String, Vec<String>) {
    // An empty message: no compression, length 0, no data.
    let body = if content_type.contains("text") {
        &b"AAAAAAA="[..]
    } else {
        &[0; 5]
    };
    let mut socket = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /grpc.health.v1.Health/Check HTTP/1.1\r\nhost: {address}\r\ncontent-type: {content_type}\r\n\
         accept: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(body).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    let mut lines = answer
        .split("\r\n")
        .take_while(|line| !line.is_empty())
        .map(str::to_ascii_lowercase);
    (lines.next().unwrap(), lines.collect())
}

#[tokio::test]
async fn grpc_web_works_around_its_translator() {
    let inside = || health().layer(both()).layer(GrpcWebLayer::new());
    let outside = || health().layer(GrpcWebLayer::new()).layer(both());
    for app in [inside as fn() -> Router, outside] {
        for content_type in [
            "application/grpc-web+proto",
            "application/grpc-web-text+proto",
        ] {
            let address = serve(app()).await;
            let (_, admitted) = web_call(address, content_type).await;
            assert!(
                admitted.contains(&String::from("ratelimit: \"once\";r=0;t=60")),
                "{admitted:?}"
            );
            assert!(
                !admitted.iter().any(|line| line.starts_with("grpc-status")),
                "{admitted:?}"
            );

            let (status, refused) = web_call(address, content_type).await;
            assert_eq!(status, "http/1.1 200 ok");
            let expected = format!("content-type: {content_type}");
            for line in [
                &expected,
                "grpc-status: 8",
                "retry-after: 60",
                "grpc-retry-pushback-ms: 60000",
            ] {
                assert!(
                    refused.iter().any(|refused| refused == line),
                    "{line}: {refused:?}"
                );
            }
            assert!(
                refused
                    .iter()
                    .any(|line| line.starts_with("grpc-status-details-bin: ")),
                "{refused:?}"
            );
        }
    }
}

#[tokio::test]
async fn http_and_grpc_share_one_limit() {
    let app = Router::new()
        .route("/", get(|| async { "hello" }))
        .merge(health())
        .layer(both());
    let channel = connect(serve(app).await).await;
    let ask = |key: &'static str| {
        let request = Request::get("http://localhost/")
            .header("x-api-key", key)
            .body(Body::empty())
            .unwrap();
        channel.clone().oneshot(request)
    };
    let check = async |key: &'static str| {
        let mut request = tonic::Request::new(HealthCheckRequest::default());
        request
            .metadata_mut()
            .insert("x-api-key", key.parse().unwrap());
        HealthClient::new(channel.clone()).check(request).await
    };
    assert_eq!(ask("ann").await.unwrap().status(), 200);
    assert_refusal(&check("ann").await.unwrap_err());

    assert!(check("bob").await.is_ok());
    let refused = ask("bob").await.unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(
        refused.headers()["content-type"],
        "application/problem+json"
    );
    assert!(!refused.headers().contains_key("grpc-status"));
}

#[tokio::test]
async fn content_type_hides_no_http_refusal() {
    let app = Router::new().fallback(async || "hello").layer(layer());
    let address = serve(app).await;
    web_call(address, "text/plain").await;
    for content_type in [
        "application/grpc-web+proto",
        "application/grpc-web-text",
        "application/grpc",
    ] {
        let (status, lines) = web_call(address, content_type).await;
        assert_eq!(status, "http/1.1 429 too many requests", "{content_type}");
        assert!(
            lines.contains(&String::from("content-type: application/problem+json")),
            "{lines:?}"
        );
        assert!(
            !lines.iter().any(|line| line.starts_with("grpc-status")),
            "{lines:?}"
        );
    }
}

#[cfg(feature = "tonic")]
#[tokio::test]
async fn tonic_server_answers_in_grpc_by_default() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = tonic::transport::Server::builder().layer(layer());
    let server = server.add_service(tonic_health::server::health_reporter().1);
    tokio::spawn(server.serve_with_incoming(tonic::transport::server::TcpIncoming::from(listener)));
    let channel = connect(address).await;
    let mut client = HealthClient::new(channel.clone());
    client.check(HealthCheckRequest::default()).await.unwrap();
    assert_refusal(
        &client
            .check(HealthCheckRequest::default())
            .await
            .unwrap_err(),
    );

    // A request that no gRPC client sends is answered in HTTP.
    let request = Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
        .body(Body::empty())
        .unwrap();
    assert_eq!(
        crate::shared::answer_to(&channel, request).await.status(),
        429
    );
}
