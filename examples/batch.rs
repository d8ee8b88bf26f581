//! Batches: a request that asks for many things gets as many as its quota has left, instead of none.
//!
//!     cargo run --release -p tower-quota-examples --example batch
//!
//! Serves on 127.0.0.1:3000; set `PORT` for another one (0 takes any that is free).
//!
//! In `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum"] }
//!     axum = "0.8"
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }

use std::io;
use std::net::SocketAddr;

use axum::{Extension, Router, routing::post};
use tower_quota::{Decision, Limit, MemoryStore, Policy, Quota, RateLimitLayer, cost, key};

/// Sends as many messages as were taken from the quota, and says so: the client sends the rest later.
async fn send(decision: Option<Extension<Decision>>) -> String {
    // There is no decision while the store is unavailable and requests go through uncounted. Then this sends none.
    let taken = decision.and_then(|Extension(decision)| Some(decision.status("messages")?.taken));
    format!("sent {}\n", taken.unwrap_or(0))
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let policy = Policy::new().limit(
        Limit::new("messages", Quota::per_hour(100))
            .by(key::client_ip())
            // The client chooses the cost. That is no risk: a client gets no more than was charged for it.
            .cost_with(cost::header("x-messages", 1))
            // A request is refused only if not even one unit is left.
            .at_most(),
    );

    let app = Router::new()
        .route("/", post(send))
        .layer(RateLimitLayer::new(MemoryStore::new(), policy).attach_decision());

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "3000".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    println!("each client: 100 messages an hour");
    println!(
        "try:  curl -i -X POST -H 'x-messages: 70' http://{address}/      # 70, then 30, then 429"
    );

    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
