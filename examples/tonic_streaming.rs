//! Charges a streaming gRPC call by messages. The layer charges an estimate when the call begins, and settles the
//! number of sent messages when the stream ends or the client disconnects.
//!
//! The service implements the generated trait of the standard health service, so the example needs no code generation.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example tonic_streaming
//!
//! The service listens on 127.0.0.1:50051. Set `PORT` to choose another port, or to 0 for any free port.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["tonic"] }
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread", "signal", "sync"] }
//!     tokio-stream = { version = "0.1", features = ["net"] }
//!     tonic = "0.14"
//!     tonic-health = "0.14"

use std::error::Error;

use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tower_quota::settle::{self, Reservation};
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key, when};

/// The most messages of a call. The layer settles a stream at the end, and would never charge an endless stream.
const MOST_MESSAGES: u64 = 100;

/// Sends as many messages as the client requests in the field `service`.
struct Feed;

#[tonic::async_trait]
impl Health for Feed {
    type WatchStream = ReceiverStream<Result<HealthCheckResponse, Status>>;

    async fn check(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(HealthCheckResponse::default()))
    }

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let wanted: u64 = request
            .get_ref()
            .service
            .parse()
            .map_err(|_| Status::invalid_argument("how many messages?"))?;
        if wanted > MOST_MESSAGES {
            return Err(Status::invalid_argument("at most 100 messages a call"));
        }
        // While the store is unavailable, calls pass without a reservation. Use an empty reservation then.
        let reservation = request
            .extensions()
            .get::<Reservation>()
            .cloned()
            .unwrap_or_default();
        let (sender, messages) = mpsc::channel(16);
        tokio::spawn(async move {
            let mut sent = 0;
            let _ = reservation.settle("messages", sent);
            // Sending fails after the client has disconnected.
            while sent < wanted
                && sender
                    .send(Ok(HealthCheckResponse::default()))
                    .await
                    .is_ok()
            {
                sent += 1;
                let _ = reservation.settle("messages", sent);
            }
            // Dropping the last clone settles the call before the client sees the end of the stream.
            drop(reservation);
            drop(sender);
        });
        Ok(Response::new(ReceiverStream::new(messages)))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let policy = Policy::new().limit(
        Limit::new("messages", Quota::per_hour(20))
            .by(key::client_ip())
            .when(when::path("/grpc.health.v1.Health/Watch"))
            // Charge an estimate of 5 messages. Further messages are charged at the end, and can lead to debt.
            .cost(5)
            .settle(settle::by_handler()),
    );

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "50051".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address} (gRPC): each client gets 20 messages an hour");
    tokio::spawn(
        Server::builder()
            .layer(RateLimitLayer::new(MemoryStore::new(), policy))
            .add_service(HealthServer::new(Feed))
            .serve_with_incoming(TcpListenerStream::new(listener)),
    );

    // Call the server, to show the effect of the limit.
    let channel = Endpoint::from_shared(format!("http://{address}"))?
        .connect()
        .await?;
    let mut client = HealthClient::new(channel);
    for wanted in [3, 30, 1] {
        match client
            .watch(HealthCheckRequest {
                service: wanted.to_string(),
            })
            .await
        {
            Ok(stream) => {
                let remaining = remaining(stream.metadata());
                let (mut stream, mut received) = (stream.into_inner(), 0);
                while stream.message().await?.is_some() {
                    received += 1;
                }
                println!(
                    "{remaining} messages remaining after an estimate of 5, received {received}"
                );
            }
            Err(status) => {
                println!(
                    "{:?}, retry after {} s",
                    status.code(),
                    metadata_field(status.metadata(), "retry-after")
                );
            }
        }
    }
    println!("the server keeps running; stop it with ctrl-c");
    tokio::signal::ctrl_c().await?;
    Ok(())
}

/// Returns the remaining units, which are the number after `r=` in `"messages";r=15;t=900`.
fn remaining(metadata: &tonic::metadata::MetadataMap) -> String {
    let field = metadata_field(metadata, "ratelimit");
    field
        .split(';')
        .find_map(|part| part.strip_prefix("r="))
        .unwrap_or("-")
        .to_owned()
}

fn metadata_field(metadata: &tonic::metadata::MetadataMap, name: &str) -> String {
    metadata
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("-")
        .to_owned()
}
