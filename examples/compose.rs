//! Combines five limits. Every API key has a quota per second, per minute and per hour, every address has a quota per
//! hour, and all clients share a quota per second.
//!
//! The store decides all five limits in one step. If any limit refuses the request, no limit is charged.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example compose
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

use axum::{Router, routing::get};
use tower_quota::{Limit, MemoryStore, MissingKey, Policy, Quota, RateLimitLayer, key};

#[tokio::main]
async fn main() -> io::Result<()> {
    let policy = Policy::new()
        // A client that invents API keys gets at most the quota of five real ones.
        .limit(Limit::new("address", Quota::per_hour(5_000).burst(600)).by(key::client_ip()))
        // Requests without an API key get 400.
        .limit(
            Limit::new("second", Quota::per_second(500).burst(600))
                .by(key::header("x-api-key"))
                .when_missing(MissingKey::Refuse),
        )
        .limit(Limit::new("minute", Quota::per_minute(20_000)).by(key::header("x-api-key")))
        // The contract counts by the hour of the clock, so use a fixed window.
        .limit(
            Limit::new("hour", Quota::per_hour(1_000).fixed_window()).by(key::header("x-api-key")),
        )
        // A limit without a key counts all clients together.
        .limit(Limit::new("everyone", Quota::per_second(50_000)));

    let app = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .layer(RateLimitLayer::new(MemoryStore::new(), policy));

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "3000".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    println!("each API key: 500 a second, 20000 a minute, 1000 in each hour of the clock");
    println!(
        "try:  curl -i -H 'x-api-key: ann' http://{address}/      # five limits, one decision"
    );
    println!("      curl -i http://{address}/                          # no key: 400, and why");

    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
