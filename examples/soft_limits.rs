//! Uses limits that do not refuse. After three attempts a login demands a challenge, and after five the layer delays
//! further attempts. A search answers from a cache if a client searches too often.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example soft_limits
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

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use tower_quota::{Flagged, Limit, MemoryStore, Over, Policy, Quota, RateLimitLayer, key, when};

const QUARTER: Duration = Duration::from_secs(900);

async fn login(flagged: Flagged, headers: HeaderMap) -> (StatusCode, &'static str) {
    // Replace with a CAPTCHA or a proof of work that your server verifies.
    let is_solved = headers
        .get("x-challenge")
        .is_some_and(|answer| answer == "solved");
    if flagged.by("challenge") && !is_solved {
        return (StatusCode::FORBIDDEN, "solve the challenge first\n");
    }
    (StatusCode::UNAUTHORIZED, "wrong password\n")
}

async fn search(flagged: Flagged) -> &'static str {
    if flagged.by("fresh") {
        "results of a minute ago\n"
    } else {
        "fresh results\n"
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let on_login = || when::path("/login");
    let policy = Policy::new()
        .limit(
            Limit::new("challenge", Quota::new(3, QUARTER).sliding_log())
                .by(key::client_ip())
                .when(on_login())
                .over(Over::Flag),
        )
        // From the sixth attempt on, every attempt waits a quarter of a second longer than the previous attempt.
        .limit(
            Limit::new("tarpit", Quota::new(5, QUARTER).sliding_log())
                .by(key::client_ip())
                .when(on_login())
                .over(Over::Delay {
                    step: Duration::from_millis(250),
                    most: Duration::from_secs(5),
                }),
        )
        .limit(
            Limit::new("fresh", Quota::per_minute(5).fixed_window())
                .by(key::client_ip())
                .when(when::path("/search"))
                .over(Over::Flag),
        )
        // Always combine soft limits with a hard limit.
        .limit(Limit::new("address", Quota::per_minute(100).fixed_window()).by(key::client_ip()))
        // Close the connection of a client that continues after 20 refusals.
        .close_after(20);

    let layer = RateLimitLayer::new(MemoryStore::new(), policy);
    let app = Router::new()
        .route("/login", post(login))
        .route("/search", get(search))
        .layer(layer);

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "3000".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    println!("a challenge after 3 logins in a quarter of an hour, and waits after 5");
    println!("try:  for i in $(seq 8); do time curl -X POST http://{address}/login; done");
    println!("      for i in $(seq 7); do curl http://{address}/search; done");
    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
