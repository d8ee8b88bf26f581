//! Makes requests wait instead of refusing them. A leaky bucket passes requests to a fragile backend at an even pace,
//! and refuses a request only if the wait would be too long.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example wait_in_line
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
use std::time::Duration;

use axum::{Extension, Router, routing::get};
use tower_quota::{Decision, Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};

/// Replace with a call to your backend. In the example, the backend serves at most two requests a second.
async fn call_backend(decision: Option<Extension<Decision>>) -> String {
    let waited = decision.map_or(Duration::ZERO, |Extension(decision)| decision.wait());
    format!("waited {} ms\n", waited.as_millis())
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let policy = Policy::new()
        // All clients share one queue. Two requests proceed every second, evenly spaced, and ten may wait.
        .limit(
            Limit::new("line", Quota::per_second(2).leaky_bucket().queue(10))
                // A request that would wait longer is refused at once, with `Retry-After`. A client that disconnects
                // frees the slot.
                .max_wait(Duration::from_secs(2))
                // Add random jitter, so that requests that arrive together do not proceed together.
                .wait_jitter(Duration::from_millis(50)),
        )
        // Give a single client half of the rate, so that no client fills the queue alone.
        .limit(Limit::new("client", Quota::per_second(1).burst(2)).by(key::client_ip()));

    let limits = RateLimitLayer::new(MemoryStore::new(), policy)
        // A waiting request holds a connection and memory, so bound the number over all queues.
        .max_waiting(1_000)
        // The handler reports how long its request waited.
        .attach_decision();
    let app = Router::new().route("/", get(call_backend)).layer(limits);

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "3000".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    println!("2 requests a second, 1 for each client; no request waits more than 2 seconds");
    println!(
        "try:  for i in $(seq 8); do curl -s -w '%{{http_code}}\\n' http://{address}/ & done; wait"
    );

    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
