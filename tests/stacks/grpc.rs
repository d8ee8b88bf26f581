//! A tonic server with an interceptor and layers of tower-http.

use std::time::Duration;

use futures_util::stream;
use http::StatusCode;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tonic::service::InterceptorLayer;
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

use crate::shared::{
    Limited, Place, Traced, assert_documented, in_each_place, remaining, three, within,
};

/// Serves health and reflection behind these layers, and connects to the server.
macro_rules! connect {
    ($($layer:expr),+) => {{
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1();
        let server = Server::builder()
            .timeout(Duration::from_secs(60))
            .concurrency_limit_per_connection(8)
            .load_shed(true)
            .layer(ServiceBuilder::new()$(.layer($layer))+)
            .add_service(tonic_health::server::health_reporter().1)
            .add_service(reflection.unwrap());
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        let endpoint = Endpoint::new(format!("http://{address}"));
        within(endpoint.unwrap().connect()).await.unwrap()
    }};
}

async fn connect(place: Place, limit: Limited, traced: &Traced) -> Channel {
    let trace = TraceLayer::new_for_grpc().on_response(traced.clone());
    let minute = Duration::from_secs(60);
    let timeout = TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, minute);
    let marking = (trace, CorsLayer::permissive(), timeout);
    let guarding = (CatchPanicLayer::new(), InterceptorLayer::new(require_token));
    match place {
        Place::Outside => connect!(limit, marking, guarding),
        Place::Between => connect!(marking, limit, guarding),
        Place::Inside => connect!(marking, guarding, limit),
    }
}

fn require_token(call: Request<()>) -> Result<Request<()>, Status> {
    let token = call.metadata().get("x-token");
    token.ok_or_else(|| Status::unauthenticated("no token"))?;
    Ok(call)
}

fn with_token<T>(message: T) -> Request<T> {
    let mut call = Request::new(message);
    let token = "token".parse().unwrap();
    call.metadata_mut().insert("x-token", token);
    call
}

/// Calls the health service, and returns the remaining units.
async fn check(channel: &Channel, call: Request<HealthCheckRequest>) -> Result<usize, Status> {
    let response = within(HealthClient::new(channel.clone()).check(call)).await?;
    Ok(remaining(response.metadata().as_ref()))
}

fn health() -> Request<HealthCheckRequest> {
    with_token(HealthCheckRequest::default())
}

#[tokio::test]
async fn refused_calls_are_seen_as_documented() {
    let seen = in_each_place(three(), async |place, limit| {
        let traced = Traced::default();
        let channel = connect(place, limit, &traced).await;
        let without_token = Request::new(HealthCheckRequest::default());
        let refused = check(&channel, without_token).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
        let counted = 2 - check(&channel, health()).await.unwrap();
        while check(&channel, health()).await.is_ok() {}

        let before = traced.0.lock().unwrap().len();
        let refused = check(&channel, health()).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        let fields = refused.metadata();
        assert_eq!(fields.get("retry-after").unwrap(), "20");
        assert_eq!(fields.get("grpc-retry-pushback-ms").unwrap(), "20000");
        let traced = traced.0.lock().unwrap().len() - before;
        (["not counted", "counted"][counted], ["no", "yes"][traced])
    });
    let seen = seen.await;
    assert_documented(
        "a call that your interceptor refuses",
        seen.map(|(counted, _)| counted),
    );
    assert_documented(
        "a call over the limit is traced",
        seen.map(|(_, traced)| traced),
    );
}

#[tokio::test]
async fn stream_of_messages_is_one_call() {
    in_each_place(three(), async |place, limit| {
        let channel = connect(place, limit, &Traced::default()).await;
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let ask = || {
            let question = MessageRequest::ListServices(String::new());
            let message_request = Some(question);
            sender
                .send(ServerReflectionRequest {
                    message_request,
                    ..Default::default()
                })
                .unwrap();
        };
        ask();
        let questions = stream::poll_fn(move |cx| receiver.poll_recv(cx));
        let mut client = ServerReflectionClient::new(channel.clone());
        let response = within(client.server_reflection_info(with_token(questions)))
            .await
            .unwrap();
        assert_eq!(remaining(response.metadata().as_ref()), 2);
        assert_eq!(check(&channel, health()).await.unwrap(), 1);
        assert_eq!(check(&channel, health()).await.unwrap(), 0);
        let refused = within(client.server_reflection_info(with_token(stream::pending()))).await;
        assert_eq!(refused.unwrap_err().code(), Code::ResourceExhausted);
        // The server answers each message before the next, and the open stream works after the refusal.
        let mut answers = response.into_inner();
        for _ in 0..5 {
            assert!(within(answers.message()).await.unwrap().is_some());
            ask();
        }
    })
    .await;
}
