//! A server for independent clients, which answers in every header style and in gRPC. `scripts/clients` starts the
//! server.
//!
//! The server prints the listening address. The header `x-client` identifies a client. A client has 3 requests an hour
//! on the path of every style, 1 request a second on `/retry`, and 1 call an hour to the health service of gRPC.

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
    // Clients that retry may send a request a second, with bursts of two.
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
