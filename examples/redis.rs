//! Shares limits between all instances of a service, with counters in Redis. Start the example twice, on two ports, and
//! both instances use up the same quotas.
//!
//! Run the example:
//!
//!     REDIS_URL=redis://127.0.0.1:6379 cargo run --release -p tower-quota-examples --example redis
//!
//! The service listens on 127.0.0.1:3000. Set `PORT` to choose another port, or to 0 for any free port.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum", "redis"] }
//!     axum = "0.8"
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }
//!     tracing-subscriber = "0.3"

use std::net::SocketAddr;
use std::process::ExitCode;

use axum::{Router, routing::get};
use tower_quota::{Limit, Policy, Quota, RateLimitLayer, RedisStore, key};

#[tokio::main]
async fn main() -> std::io::Result<ExitCode> {
    // The layer and the store log outages and mistakes. You see them only with a subscriber.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    // Give the store a prefix named for your service. Two services with one prefix share their counters.
    let store = match RedisStore::options().prefix("orders").connect(&url).await {
        Ok(store) => store,
        Err(error) => {
            eprintln!("{error}");
            eprintln!("start a server (redis-server), or name yours: REDIS_URL=redis://HOST:PORT");
            return Ok(ExitCode::FAILURE);
        }
    };

    let policy = Policy::new()
        // A client could send a new key with every request, so limit the address too.
        .limit(Limit::new("address", Quota::per_day(50_000).burst(600)).by(key::client_ip()))
        // Requests without the header get 400.
        .limit(Limit::new("second", Quota::per_second(5_000)).by(key::header("x-api-key")))
        .limit(Limit::new("minute", Quota::per_minute(60_000)).by(key::header("x-api-key")))
        .limit(
            Limit::new("day", Quota::per_day(10_000).fixed_window()).by(key::header("x-api-key")),
        );

    // One round trip to Redis decides all four limits.
    let app = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .layer(RateLimitLayer::new(store, policy));

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "3000".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    println!("each API key: 5000 a second, 60000 a minute, 10000 a day (UTC), over all instances");
    println!("try:  curl -i -H 'x-api-key: ann' http://{address}/");
    println!(
        "      PORT=3001 cargo run --release -p tower-quota-examples --example redis       # another instance, the same budget"
    );

    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await?;
    Ok(ExitCode::SUCCESS)
}
