//! HTTP and gRPC in one process, on one port, by one budget: the layer stands around an axum router that serves both,
//! and answers each in its own way.
//!
//!     cargo run --release -p tower-quota-examples --example http_and_grpc
//!
//! Serves on 127.0.0.1:3000; set `PORT` for another one (0 takes any that is free).
//!
//! In `Cargo.toml`:
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
    // A header over HTTP is metadata over gRPC: one client, one counter. Clients without a key are counted by address.
    let client = || key::header("x-api-key").or(key::client_ip());
    let policy = Policy::new()
        // Keys are not verified here, and made-up ones get a fresh counter each: their address is counted too.
        .limit(Limit::new("address", Quota::per_minute(60)).by(key::client_ip()))
        .limit(Limit::new("requests", Quota::per_hour(5)).by(client()))
        // Counted by the path, as the server chooses the method: what a call says of its content type changes nothing.
        .limit(
            Limit::new("calls", Quota::per_hour(3))
                .by(key::all((client(), key::grpc_method())))
                .when(when::grpc_service("grpc.health.v1.Health")),
        );
    // With two ports, make a layer for each, over clones of one store: a layer and its clones share all settings.
    let limits = RateLimitLayer::new(MemoryStore::new(), policy)
        // Calls are refused in gRPC, and requests in HTTP.
        .protocol(Protocol::Both)
        .grpc_domain("api.example.com");

    let (_, health) = tonic_health::server::health_reporter();
    // Without tonic's fallback, which would answer unknown paths with 200 and a status of gRPC.
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
    // An empty message is a frame of five zeros.
    println!(
        "      printf '\\0\\0\\0\\0\\0' | curl -i --http2-prior-knowledge --data-binary @- -o - \\"
    );
    println!("        -H 'x-api-key: ann' -H 'content-type: application/grpc' \\");
    println!("        http://{address}/grpc.health.v1.Health/Check");

    // `axum` has its feature `http2` for this.
    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
