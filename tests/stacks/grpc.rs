//! Tonic servers with interceptors, reflection and their own settings.

use std::time::Duration;

use futures_util::stream;
use http::{HeaderMap, StatusCode};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tonic::service::InterceptorLayer;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::CorsLayer;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;
use tower_quota::when;

use crate::each_layer::LONG;
use crate::limited::{limited, limited_by, three_per_minute};
use crate::server::within;

/// Admits calls with a token.
fn require_token(call: Request<()>) -> Result<Request<()>, Status> {
    if call.metadata().contains_key("x-token") {
        Ok(call)
    } else {
        Err(Status::unauthenticated("no token"))
    }
}

/// Serves health behind an interceptor, and reflection, and connects to them.
macro_rules! connect {
    ($server:expr) => {{
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let health =
            InterceptedService::new(tonic_health::server::health_reporter().1, require_token);
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()
            .unwrap();
        let server = $server.add_service(health).add_service(reflection);
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        within(
            Endpoint::new(format!("http://{address}"))
                .unwrap()
                .connect(),
        )
        .await
        .unwrap()
    }};
}

/// Calls the health service, and returns the units left of three.
async fn check(channel: &Channel, token: bool) -> Result<String, Status> {
    let mut call = Request::new(HealthCheckRequest::default());
    if token {
        call.metadata_mut()
            .insert("x-token", "token".parse().unwrap());
    }
    let response = within(HealthClient::new(channel.clone()).check(call)).await?;
    Ok(left(&response.metadata().clone().into_headers()).unwrap())
}

fn left(headers: &HeaderMap) -> Option<String> {
    Some(
        headers
            .get("x-ratelimit-remaining")?
            .to_str()
            .unwrap()
            .to_owned(),
    )
}

fn assert_refused(status: &Status) {
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.metadata().get("retry-after").unwrap(), "20");
    assert_eq!(
        status.metadata().get("grpc-retry-pushback-ms").unwrap(),
        "20000"
    );
}

#[tokio::test]
async fn inner_interceptor_is_counted() {
    for is_slow in [false, true] {
        let channel = connect!(Server::builder().layer(limited_by(three_per_minute(), is_slow)));
        assert_eq!(check(&channel, true).await.unwrap(), "2");
        let refused = check(&channel, false).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
        assert_eq!(
            left(&refused.metadata().clone().into_headers()).unwrap(),
            "1"
        );
        assert_eq!(check(&channel, true).await.unwrap(), "0");
        // The limit is asked before the token.
        assert_refused(&check(&channel, false).await.unwrap_err());
    }
}

#[tokio::test]
async fn outer_interceptor_refuses_uncounted() {
    let stack = ServiceBuilder::new()
        .layer(InterceptorLayer::new(require_token))
        .layer(limited());
    let channel = connect!(Server::builder().layer(stack));
    for _ in 0..4 {
        assert_eq!(
            check(&channel, false).await.unwrap_err().code(),
            Code::Unauthenticated
        );
    }
    for left in ["2", "1", "0"] {
        assert_eq!(check(&channel, true).await.unwrap(), left);
    }
    assert_refused(&check(&channel, true).await.unwrap_err());
}

#[tokio::test]
async fn limit_around_interceptor_layer_counts_it() {
    let stack = ServiceBuilder::new()
        .layer(limited())
        .layer(InterceptorLayer::new(require_token));
    let channel = connect!(Server::builder().layer(stack));
    assert_eq!(
        check(&channel, false).await.unwrap_err().code(),
        Code::Unauthenticated
    );
    assert_eq!(check(&channel, true).await.unwrap(), "1");
}

#[tokio::test]
async fn server_settings_and_layers_compose() {
    let settings = || {
        Server::builder()
            .timeout(Duration::from_secs(60))
            .concurrency_limit_per_connection(8)
            .load_shed(true)
    };
    let guards = || (TraceLayer::new_for_grpc(), CatchPanicLayer::new());
    let answers = || {
        (
            CorsLayer::permissive(),
            TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, LONG),
        )
    };
    let outer = ServiceBuilder::new()
        .layer(guards())
        .layer(answers())
        .layer(limited());
    let inner = ServiceBuilder::new()
        .layer(limited())
        .layer(guards())
        .layer(answers());
    let between = ServiceBuilder::new()
        .layer(answers())
        .layer(limited())
        .layer(guards());
    for channel in [
        connect!(settings().layer(outer)),
        connect!(settings().layer(inner)),
        connect!(settings().layer(between)),
    ] {
        for left in ["2", "1", "0"] {
            assert_eq!(check(&channel, true).await.unwrap(), left);
        }
        assert_refused(&check(&channel, true).await.unwrap_err());
    }
}

fn list_services() -> ServerReflectionRequest {
    let message_request = Some(MessageRequest::ListServices(String::new()));
    ServerReflectionRequest {
        host: String::new(),
        message_request,
    }
}

#[tokio::test]
async fn reflection_stream_is_one_call() {
    for is_slow in [false, true] {
        let channel = connect!(Server::builder().layer(limited_by(three_per_minute(), is_slow)));
        let mut client = ServerReflectionClient::new(channel.clone());
        let (sender, mut receiver) = mpsc::unbounded_channel();
        sender.send(list_services()).unwrap();
        let questions = stream::poll_fn(move |cx| receiver.poll_recv(cx));
        let response = within(client.server_reflection_info(questions))
            .await
            .unwrap();
        assert_eq!(
            left(&response.metadata().clone().into_headers()).unwrap(),
            "2"
        );
        // The first answer arrives before the last question is asked.
        let mut answers = response.into_inner();
        for _ in 0..5 {
            assert!(within(answers.message()).await.unwrap().is_some());
            sender.send(list_services()).unwrap();
        }
        assert_eq!(check(&channel, true).await.unwrap(), "1");
        assert_eq!(check(&channel, true).await.unwrap(), "0");
        assert_refused(
            &within(client.server_reflection_info(stream::pending()))
                .await
                .unwrap_err(),
        );
        assert!(within(answers.message()).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn reflection_is_unlimited_beside_service_limit() {
    let health_only = three_per_minute().when(when::grpc_service("grpc.health.v1.Health"));
    let channel = connect!(Server::builder().layer(limited_by(health_only, false)));
    for _ in 0..4 {
        let question = stream::iter([list_services()]);
        let mut client = ServerReflectionClient::new(channel.clone());
        assert!(
            within(client.server_reflection_info(question))
                .await
                .is_ok()
        );
    }
    assert_eq!(check(&channel, true).await.unwrap(), "2");
}
