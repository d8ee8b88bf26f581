//! Waiting instead of refusing: a leaky bucket sends requests on to something fragile at an even pace. Each waits for
//! its turn, as long as that is not too far away.
//!
//!     cargo run --release -p tower-quota-examples --example wait_in_line
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
use std::time::Duration;

use axum::{Extension, Router, routing::get};
use tower_quota::{Decision, Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};

/// Stands for a backend that takes at most two requests a second.
async fn fragile(decision: Option<Extension<Decision>>) -> String {
    let waited = decision.map_or(Duration::ZERO, |Extension(decision)| decision.wait());
    format!("waited {} ms\n", waited.as_millis())
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let policy = Policy::new()
        // One queue for all clients: two requests proceed each second, evenly spaced, and ten may wait.
        .limit(
            Limit::new("line", Quota::per_second(2).leaky_bucket().queue(10))
                // A request that would wait longer is refused at once, with `Retry-After`. A client that hangs up frees
                // its slot.
                .max_wait(Duration::from_secs(2))
                // Random jitter, only ever later: requests that arrive together do not proceed together.
                .wait_jitter(Duration::from_millis(50)),
        )
        // Half of the rate, and two requests at once: one client alone cannot keep the others out.
        .limit(Limit::new("client", Quota::per_second(1).burst(2)).by(key::client_ip()));

    let limits = RateLimitLayer::new(MemoryStore::new(), policy)
        // Over all queues: each waiting request holds its connection and its memory.
        .max_waiting(1_000)
        // The handler reports how long its request waited.
        .attach_decision();
    let app = Router::new().route("/", get(fragile)).layer(limits);

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "3000".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    println!("2 a second, of which each client gets 1; none waits for more than 2 seconds");
    println!(
        "try:  for i in $(seq 8); do curl -s -w '%{{http_code}}\\n' http://{address}/ & done; wait"
    );

    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
