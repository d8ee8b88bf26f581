//! A limited gRPC server and its client, in one process: the standard health service behind a limit of 3 calls.
//!
//!     cargo run --release -p tower-quota-examples --example tonic
//!
//! Serves on 127.0.0.1:50051; set `PORT` for another one (0 takes any that is free).
//!
//! In `Cargo.toml`:
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
    println!("the server goes on; stop it with ctrl-c");
    // An empty message is a frame of five zeros.
    println!(
        "try:  printf '\\0\\0\\0\\0\\0' | curl -i --http2-prior-knowledge --data-binary @- -o - \\"
    );
    println!(
        "        -H 'content-type: application/grpc' http://{address}/grpc.health.v1.Health/Check"
    );
    tokio::signal::ctrl_c().await?;
    Ok(())
}

/// Returns the fields in which the limiter reports the client's status and the wait.
fn limit_status(metadata: &tonic::metadata::MetadataMap) -> String {
    let said = |name| {
        metadata
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("-")
            .to_owned()
    };
    format!(
        "ratelimit: {}, retry-after: {}",
        said("ratelimit"),
        said("retry-after")
    )
}
