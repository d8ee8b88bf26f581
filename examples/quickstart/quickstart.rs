//! Limits an axum service, with counters in memory.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-quickstart --example quickstart
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
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};

#[tokio::main]
async fn main() -> io::Result<()> {
    let policy = Policy::new()
        // A token bucket admits 5 requests at once and refills by 2 a second.
        .limit(Limit::new("burst", Quota::per_second(2).burst(5)).by(key::client_ip()))
        .limit(Limit::new("minute", Quota::per_minute(30).fixed_window()).by(key::client_ip()))
        // A limit without a key counts all clients together.
        .limit(Limit::new("everyone", Quota::per_second(1_000)));

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
    println!("each client: 2 a second, 5 at once, 30 a minute; everyone together: 1000 a second");
    println!("try:  curl -i http://{address}/");
    println!(
        "      for i in $(seq 8); do curl -s -o /dev/null -w '%{{http_code}}\\n' http://{address}/; done   # five or six 200, then 429"
    );

    // `key::client_ip` reads the address of the peer, which `into_make_service_with_connect_info` provides.
    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
