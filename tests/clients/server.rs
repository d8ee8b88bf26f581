//! A server that answers in every header style and in gRPC, for independent clients: see `scripts/clients`.
//!
//! It prints the address it listens on. Each client, identified by the header `x-client`, has 3 requests an hour in each
//! style under a path of its own, 1 request a second under `/retry`, and 1 call an hour to the standard health service of gRPC.

use axum::Router;
use axum::routing::{get, put};
use tonic::service::Routes;
use tower_quota::{
    HeaderStyle, Limit, MemoryStore, Policy, Protocol, Quota, RateLimitLayer, Reset, key,
};

const STYLES: [(&str, HeaderStyle); 5] = [
    ("/draft-11", HeaderStyle::Draft11),
    ("/draft-7", HeaderStyle::Draft7),
    ("/draft-6", HeaderStyle::Draft6),
    ("/x-delta", HeaderStyle::XRateLimit(Reset::Delta)),
    ("/x-epoch", HeaderStyle::XRateLimit(Reset::Epoch)),
];

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut app = Router::new();
    for (path, style) in STYLES {
        let styled = layer(Limit::new("say \"hour\"", Quota::per_hour(3))).headers([style]);
        app = app.merge(
            Router::new()
                .route(path, get(|| async { "hello" }))
                .layer(styled),
        );
    }
    // One request a second, two at once: for clients that retry.
    let seconds = layer(Limit::new("seconds", Quota::per_second(1).burst(2)));
    app = app.merge(
        Router::new()
            .route("/retry", put(|body: String| async { body }))
            .layer(seconds),
    );

    let (_, health) = tonic_health::server::health_reporter();
    let calls = layer(Limit::new("calls", Quota::per_hour(1)))
        .grpc_domain("api.example.com")
        .protocol(Protocol::Both);
    app = app.merge(Routes::new(health).into_axum_router().layer(calls));

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    axum::serve(listener, app).await
}

fn layer(limit: Limit) -> RateLimitLayer<MemoryStore> {
    RateLimitLayer::new(
        MemoryStore::new(),
        Policy::new().limit(limit.by(key::header("x-client"))),
    )
}
