//! A limited Axum service, counting in memory.
//!
//!     cargo run --release -p tower-quota-quickstart --example quickstart
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

use axum::{Router, routing::get};
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};

#[tokio::main]
async fn main() -> io::Result<()> {
    let policy = Policy::new()
        // A bucket, which refills while clients use it: 5 at once, and 2 more each second.
        .limit(Limit::new("burst", Quota::per_second(2).burst(5)).by(key::client_ip()))
        .limit(Limit::new("minute", Quota::per_minute(30).fixed_window()).by(key::client_ip()))
        .limit(Limit::new("everyone", Quota::per_second(1_000))); // no key: all clients together

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

    // The service must see who is calling: `with_connect_info` puts the peer's address where `client_ip` finds it.
    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
