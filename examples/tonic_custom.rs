//! Customizes the refusals of a gRPC server. A call without an API key gets `UNAUTHENTICATED`, a refused call gets your
//! own message, and a stream ends when the quota is exhausted.
//!
//! The service implements the generated trait of the standard health service, so the example needs no code generation.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example tonic_custom
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
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tower_quota::{
    Limit, MemoryStore, MissingKey, Policy, Quota, RateLimitLayer, Reason, key,
    response::GrpcStatus, settle, when,
};

/// The size of a message on the wire, with five bytes for the frame and two for the status `SERVING`.
const MESSAGE_BYTES: u64 = 7;

/// Sends as many messages as the client requests in the field `service`.
struct Feed;

#[tonic::async_trait]
impl Health for Feed {
    type WatchStream = tokio_stream::Iter<std::vec::IntoIter<Result<HealthCheckResponse, Status>>>;

    async fn check(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(HealthCheckResponse { status: 1 }))
    }

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let wanted: usize = request
            .get_ref()
            .service
            .parse()
            .map_err(|_| Status::invalid_argument("how many messages?"))?;
        Ok(Response::new(tokio_stream::iter(vec![
            Ok(
                HealthCheckResponse { status: 1 }
            );
            wanted.min(1_000)
        ])))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let policy = Policy::new()
        // The example does not verify API keys. A client could send a new key every time, so limit the address too.
        .limit(Limit::new("address", Quota::per_minute(60)).by(key::client_ip()))
        .limit(
            Limit::new("calls", Quota::per_minute(3))
                .by(key::metadata("x-api-key"))
                // Without the next line, calls without a key get `INVALID_ARGUMENT`.
                .when_missing(MissingKey::Unauthenticated)
                .when(when::grpc_method("grpc.health.v1.Health/Check")),
        )
        .limit(
            Limit::new("messages", Quota::per_hour(20))
                .by(key::metadata("x-api-key"))
                .when_missing(MissingKey::Unauthenticated)
                .when(when::grpc_method("grpc.health.v1.Health/Watch"))
                // Without `cut_when_spent`, the stream continues to the end, and the client owes the missing units.
                .settle(settle::body_bytes(MESSAGE_BYTES).cut_when_spent()),
        );

    let limits = RateLimitLayer::new(MemoryStore::new(), policy)
        // Sets the domain of `ErrorInfo`, which client programs read.
        .grpc_domain("feed.example.com")
        .on_refused_grpc(|refused| match refused.reason() {
            Reason::Unauthenticated(_) => {
                Status::unauthenticated("send your API key as x-api-key").into()
            }
            Reason::OverQuota(_) => {
                let seconds = refused.retry_after_secs().unwrap_or_default();
                // The layer adds the details, such as `RetryInfo`.
                GrpcStatus::new(
                    Code::ResourceExhausted.into(),
                    format!("your plan has more calls in {seconds} s"),
                )
            }
            _ => GrpcStatus::of(refused),
        });

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "50051".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!(
        "listening on http://{address} (gRPC): each API key gets 3 calls a minute and 20 messages an hour"
    );
    tokio::spawn(
        Server::builder()
            .layer(limits)
            .add_service(HealthServer::new(Feed))
            .serve_with_incoming(TcpListenerStream::new(listener)),
    );

    // Call the server, to show the effect of the limits.
    let mut client = HealthClient::new(
        Endpoint::from_shared(format!("http://{address}"))?
            .connect()
            .await?,
    );
    if let Err(status) = client.check(HealthCheckRequest::default()).await {
        println!("no key: {:?}, {}", status.code(), status.message());
    }
    for _ in 1..=4 {
        match client.check(with_key("")).await {
            Ok(_) => println!("ann: served"),
            Err(status) => println!("ann: {:?}, {}", status.code(), status.message()),
        }
    }
    for wanted in ["15", "30"] {
        let (received, end) = watch(&mut client, wanted).await;
        println!("ann: asked for {wanted} messages, got {received}, {end:?}");
    }
    println!("the server keeps running; stop it with ctrl-c");
    tokio::signal::ctrl_c().await?;
    Ok(())
}

/// Returns the number of received messages, and the code of the call.
async fn watch(client: &mut HealthClient<Channel>, wanted: &str) -> (u32, Code) {
    let mut stream = match client.watch(with_key(wanted)).await {
        Ok(stream) => stream.into_inner(),
        Err(status) => return (0, status.code()),
    };
    let mut received = 0;
    loop {
        match stream.message().await {
            Ok(Some(_)) => received += 1,
            Ok(None) => return (received, Code::Ok),
            Err(status) => return (received, status.code()),
        }
    }
}

fn with_key(service: &str) -> Request<HealthCheckRequest> {
    let mut request = Request::new(HealthCheckRequest {
        service: service.to_owned(),
    });
    request
        .metadata_mut()
        .insert("x-api-key", MetadataValue::from_static("ann"));
    request
}
