//! Throttles the `Channel` of a tonic client, with a separate counter for every gRPC method.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example client_tonic
//!
//! The example ends at once. The server runs in the same process.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum", "throttle", "tonic"] }
//!     axum = "0.8"
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }
//!     tokio-stream = { version = "0.1", features = ["net"] }
//!     tonic = "0.14"
//!     tonic-health = "0.14"
//!     tower = { version = "0.5", features = ["util"] }

use std::error::Error;
use std::time::Duration;

use axum::http::Request;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::body::Body;
use tonic::transport::{Endpoint, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::Layer;
use tower_quota::throttle::{Throttled, remote_headers};
use tower_quota::{Limit, Limiter, MemoryStore, Policy, Quota, RateLimitLayer, ThrottleLayer};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = start_server().await?;

    // Call a method at most 100 times a second. A call waits at most a second.
    let limiter = Limiter::new(MemoryStore::new(), "calls", Quota::per_second(100));
    let throttle = ThrottleLayer::new(limiter, |call: &Request<Body>| call.uri().path().to_owned())
        .max_wait(Duration::from_secs(1))
        // The server really allows 3 calls a minute, and says so in the metadata. The throttle obeys the metadata.
        .pushback(remote_headers);
    let channel = Endpoint::from_shared(url)?.connect().await?;
    let mut client = HealthClient::new(throttle.layer(channel));

    for number in 1..=5 {
        match client.check(HealthCheckRequest::default()).await {
            Ok(reply) => println!("call {number}: {:?}", reply.get_ref().status()),
            Err(status) => match throttled(&status) {
                Some(refusal) => println!("call {number}: not sent, {refusal}"),
                None => println!("call {number}: refused by the server, {:?}", status.code()),
            },
        }
    }
    Ok(())
}

/// Returns the refusal of the throttle, or `None` if the status came from the server.
fn throttled(status: &Status) -> Option<&Throttled> {
    let mut error: &dyn Error = status;
    while let Some(source) = error.source() {
        if let Some(refusal) = source.downcast_ref() {
            return Some(refusal);
        }
        error = source;
    }
    None
}

/// Starts a limited health service, and returns the URL.
async fn start_server() -> std::io::Result<String> {
    let limits = Policy::new().limit(Limit::new("calls", Quota::per_minute(3)));
    let (_, health) = tonic_health::server::health_reporter();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(
        Server::builder()
            .layer(RateLimitLayer::new(MemoryStore::new(), limits))
            .add_service(health)
            .serve_with_incoming(TcpListenerStream::new(listener)),
    );
    Ok(url)
}
