//! Tries a new limit as a shadow, which reports the requests that the limit would refuse, but admits them. Penalties
//! block clients that ignore refusals, for longer every time.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example shadow_and_penalties
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

use axum::{Router, routing::get};
use tower_quota::{Decided, Limit, MemoryStore, Penalty, Policy, Quota, RateLimitLayer, key};

/// Replace with a counter of your metrics library.
fn count(decided: &Decided<'_>) {
    let shadows = decided
        .decision
        .into_iter()
        .flat_map(|decision| decision.would_refuse());
    let shadows: Vec<&str> = shadows.map(|standing| standing.name.as_str()).collect();
    println!(
        "{}, would have been refused by {shadows:?}",
        decided.label()
    );
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let policy = Policy::new()
        .limit(
            Limit::new("minute", Quota::per_minute(3))
                .by(key::client_ip())
                // Two refusals are free. Every further refusal blocks the client for one more minute, up to 15 minutes.
                // A minute without a refusal removes one strike.
                .penalty(
                    Penalty::after(2)
                        .step(Duration::from_secs(60))
                        .most(Duration::from_secs(900)),
                ),
        )
        // Make the proposed quota a shadow, and watch the reports before you enforce the limit.
        .limit(
            Limit::new("proposed", Quota::per_minute(2))
                .by(key::client_ip())
                .shadow(),
        );

    let limits = RateLimitLayer::new(MemoryStore::new(), policy)
        .on_decision(count)
        // Show clients of a test environment the shadows that would have refused, in `X-RateLimit-Shadow`.
        .shadow_header();
    let app = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .layer(limits);

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "3000".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    println!("each client: 3 a minute, and 2 in a shadow limit");
    println!(
        "try:  for i in $(seq 8); do curl -s -D - -o /dev/null http://{address}/ | grep -i -e http/ -e shadow \\"
    );
    println!("        -e retry; done");

    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
