//! Grants a part of a batch. If the quota has fewer units left than the client wants, the handler sends as many
//! messages as the quota allows, instead of refusing the whole batch.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example batch
//!
//! The service listens on 127.0.0.1:3000. Set `PORT` to choose another port, or to 0 for any free port.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum"] }
//!     axum = "0.8"
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }

use std::io;
use std::net::SocketAddr;

use axum::{Extension, Router, routing::post};
use tower_quota::{Decision, Limit, MemoryStore, Policy, Quota, RateLimitLayer, cost, key};

/// Sends as many messages as the limit granted, and tells the client how many, so that the client sends the rest later.
async fn send(decision: Option<Extension<Decision>>) -> String {
    // While the store is unavailable, requests pass without a decision. Send no messages then.
    let granted = decision.and_then(|Extension(decision)| Some(decision.status("messages")?.taken));
    format!("sent {}\n", granted.unwrap_or(0))
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let policy = Policy::new().limit(
        Limit::new("messages", Quota::per_hour(100))
            .by(key::client_ip())
            // The client may choose the cost, because you send no more messages than the limit charged.
            .cost_with(cost::header("x-messages", 1))
            // Charge at most the remaining units, and refuse only if no unit is left.
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
