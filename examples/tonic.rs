//! Limits a gRPC server, and shows how a client reads the limits. The server offers the standard health service, and
//! allows 3 calls a minute.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example tonic
//!
//! The service listens on 127.0.0.1:50051. Set `PORT` to choose another port, or to 0 for any free port.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["tonic"] }
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread", "signal"] }
//!     tokio-stream = { version = "0.1", features = ["net"] }
//!     tonic = "0.14"
//!     tonic-health = "0.14"

use std::error::Error;

use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Endpoint, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let policy = Policy::new()
        .limit(Limit::new("calls", Quota::per_minute(3)).by(key::client_ip()))
        .limit(Limit::new("everyone", Quota::per_second(1_000)));
    let (_, health) = tonic_health::server::health_reporter();

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "50051".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address} (gRPC): each client may make 3 calls a minute");
    tokio::spawn(
        Server::builder()
            .layer(RateLimitLayer::new(MemoryStore::new(), policy))
            .add_service(health)
            .serve_with_incoming(TcpListenerStream::new(listener)),
    );

    let channel = Endpoint::from_shared(format!("http://{address}"))?
        .connect()
        .await?;
    let mut client = HealthClient::new(channel);
    for call in 1..=5 {
        match client.check(HealthCheckRequest::default()).await {
            Ok(reply) => println!(
                "call {call}: {:?}, {}",
                reply.get_ref().status(),
                limit_status(reply.metadata())
            ),
            Err(status) => {
                println!(
                    "call {call}: {:?}: {}, {}",
                    status.code(),
                    status.message(),
                    limit_status(status.metadata())
                )
            }
        }
    }
    println!("the server keeps running; stop it with ctrl-c");
    // The body of an empty gRPC message is a frame of five zero bytes.
    println!(
        "try:  printf '\\0\\0\\0\\0\\0' | curl -i --http2-prior-knowledge --data-binary @- -o - \\"
    );
    println!(
        "        -H 'content-type: application/grpc' http://{address}/grpc.health.v1.Health/Check"
    );
    tokio::signal::ctrl_c().await?;
    Ok(())
}

/// Returns the metadata with the remaining quota and the wait.
fn limit_status(metadata: &tonic::metadata::MetadataMap) -> String {
    let field = |name| {
        metadata
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("-")
            .to_owned()
    };
    format!(
        "ratelimit: {}, retry-after: {}",
        field("ratelimit"),
        field("retry-after")
    )
}
