//! Limits HTTP and gRPC requests on one port by the same quotas. The layer wraps an axum router that serves both, and
//! refuses requests in the protocol of the client.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example http_and_grpc
//!
//! The service listens on 127.0.0.1:3000. Set `PORT` to choose another port, or to 0 for any free port.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum", "tonic"] }
//!     axum = { version = "0.8", features = ["http2"] }
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }
//!     tonic = "0.14"
//!     tonic-health = "0.14"

use std::io;
use std::net::SocketAddr;

use axum::{Router, routing::get};
use tonic::service::Routes;
use tower_quota::{Limit, MemoryStore, Policy, Protocol, Quota, RateLimitLayer, key, when};

#[tokio::main]
async fn main() -> io::Result<()> {
    // A header in HTTP is metadata in gRPC, so a client has the same counter in both. Clients without an API key are
    // counted by address.
    let client = || key::header("x-api-key").or(key::client_ip());
    let policy = Policy::new()
        // The example does not verify API keys. A client could send a new key every time, so limit the address too.
        .limit(Limit::new("address", Quota::per_minute(60)).by(key::client_ip()))
        .limit(Limit::new("requests", Quota::per_hour(5)).by(client()))
        // Chooses calls by path, like the server. A false content type does not escape the limit.
        .limit(
            Limit::new("calls", Quota::per_hour(3))
                .by(key::all((client(), key::grpc_method())))
                .when(when::grpc_service("grpc.health.v1.Health")),
        );
    // If you serve HTTP and gRPC on two ports, create two layers over clones of one store. Clones of a layer share all
    // settings.
    let limits = RateLimitLayer::new(MemoryStore::new(), policy)
        // Answers calls with a gRPC status, and requests with an HTTP status.
        .protocol(Protocol::Both)
        .grpc_domain("api.example.com");

    let (_, health) = tonic_health::server::health_reporter();
    // Remove the fallback of tonic, which answers unknown paths with HTTP 200 and a gRPC status.
    let calls = Routes::new(health).into_axum_router().reset_fallback();
    let app = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .merge(calls)
        .layer(limits);

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "3000".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address} (HTTP and gRPC)");
    println!("each API key: 5 requests an hour, of which 3 may be calls of one gRPC method");
    println!("try:  curl -i -H 'x-api-key: ann' http://{address}/");
    // The body of an empty gRPC message is a frame of five zero bytes.
    println!(
        "      printf '\\0\\0\\0\\0\\0' | curl -i --http2-prior-knowledge --data-binary @- -o - \\"
    );
    println!("        -H 'x-api-key: ann' -H 'content-type: application/grpc' \\");
    println!("        http://{address}/grpc.health.v1.Health/Check");

    // gRPC needs the feature `http2` of axum.
    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
