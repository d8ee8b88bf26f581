//! A tonic server behind the layer.

use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower_quota::when;

use crate::service::fixed;

#[tokio::test]
async fn tonic_client_gets_unavailable_with_retry_info() {
    let layer = fixed(1);
    let handle = layer.handle();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_reporter, health) = tonic_health::server::health_reporter();
    let server = Server::builder().layer(layer).add_service(health);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));

    let channel = Endpoint::new(format!("http://{address}")).unwrap();
    let mut client = HealthClient::new(channel.connect().await.unwrap());
    let request = || HealthCheckRequest::default();
    let watched = client.watch(request()).await.unwrap();
    assert_eq!(handle.stats().in_progress, 1, "the stream holds its place");
    let refused: Status = client.check(request()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.message().starts_with("The service is overloaded"));
    let details = refused.details().to_vec();
    let is_in = |name: &[u8]| details.windows(name.len()).any(|part| part == name);
    assert!(is_in(b"google.rpc.RetryInfo"));
    assert!(is_in(b"SERVICE_OVERLOADED"));
    assert!(refused.metadata().contains_key("grpc-retry-pushback-ms"));
    drop(watched);
}

#[tokio::test]
async fn health_checks_are_never_refused() {
    let layer = fixed(1).exempt(when::grpc_service("grpc.health.v1.Health"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_reporter, health) = tonic_health::server::health_reporter();
    let server = Server::builder().layer(layer).add_service(health);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    let channel = Endpoint::new(format!("http://{address}")).unwrap();
    let mut client = HealthClient::new(channel.connect().await.unwrap());
    let _watched = client.watch(HealthCheckRequest::default()).await.unwrap();
    assert!(client.check(HealthCheckRequest::default()).await.is_ok());
}
