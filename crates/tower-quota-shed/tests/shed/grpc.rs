//! A tonic server behind the layer.

use std::future::pending;

use http::{Request, Response};
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::{Layer, Service, service_fn};

use crate::service::{Content, fixed, get};

/// Returns a client of a server without free places, who puts this prefix before the names of methods.
async fn connect(prefix: &'static str) -> HealthClient<Channel> {
    let layer = fixed(1);
    let busy = |_: Request<()>| pending::<Result<Response<Content>, ()>>();
    tokio::spawn(layer.layer(service_fn(busy)).call(get("/")));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_reporter, health) = tonic_health::server::health_reporter();
    let server = Server::builder().layer(layer).add_service(health);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    let channel = Endpoint::new(format!("http://{address}")).unwrap();
    let origin = http::Uri::from_static(prefix);
    HealthClient::with_origin(channel.connect().await.unwrap(), origin)
}

#[tokio::test]
async fn tonic_client_gets_unavailable_with_retry_info() {
    let mut client = connect("/orders").await;
    let refused: Status = client
        .check(HealthCheckRequest::default())
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.message().starts_with("The service is overloaded"));
    let details = refused.details().to_vec();
    let is_in = |name: &[u8]| details.windows(name.len()).any(|part| part == name);
    assert!(is_in(b"google.rpc.RetryInfo"));
    assert!(is_in(b"SERVICE_OVERLOADED"));
    assert!(refused.metadata().contains_key("grpc-retry-pushback-ms"));
    assert_eq!(
        refused.metadata().get("tower-quota-shed-cause").unwrap(),
        "limit"
    );
}

#[tokio::test]
async fn health_checks_are_never_refused() {
    let mut client = connect("/").await;
    let _watched = client.watch(HealthCheckRequest::default()).await.unwrap();
    assert!(client.check(HealthCheckRequest::default()).await.is_ok());
}
