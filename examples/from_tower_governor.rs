//! A service that was limited by tower_governor, moved to tower-quota. The old lines stand above the new ones.
//!
//!     cargo run --release -p tower-quota-examples --example from_tower_governor
//!
//! What maps to what, and the traps, such as `per_second(2)`, which is another rate there:
//! `docs/guide/from_tower_governor.md`.
//!
//! Serves on 127.0.0.1:3000; set `PORT` for another one (0 takes any that is free).
//!
//! In `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum"] }
//!     axum = "0.8"
//!     serde_json = "1"
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::{Router, routing::get, routing::post};
use serde_json::json;
use tower_quota::{
    HeaderStyle, Limit, MemoryStore, Policy, Quota, RateLimitLayer, Reset, key,
    response::{HeaderReport, WriteHeaders},
    when,
};

/// Writes `X-RateLimit-After` on refusals, the seconds to wait, for clients that read it: tower_governor wrote it.
struct After;

static AFTER: [HeaderName; 1] = [HeaderName::from_static("x-ratelimit-after")];

impl WriteHeaders for After {
    fn fields(&self) -> &'static [HeaderName] {
        &AFTER
    }

    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
        if let Some(seconds) = report.retry_after_secs() {
            headers.insert(&AFTER[0], HeaderValue::from(seconds));
        }
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let policy = Policy::new()
        // GovernorConfigBuilder::default().per_second(2).burst_size(5)
        .limit(
            Limit::new("address", Quota::new(1, Duration::from_secs(2)).burst(5))
                .by(key::client_ip()),
        )
        // A second governor on `/signup`: .per_second(60).burst_size(2)
        .limit(
            Limit::new("signup", Quota::new(1, Duration::from_secs(60)).burst(2))
                .by(key::client_ip())
                .when(when::path("/signup")),
        );
    // Behind a proxy, SmartIpKeyExtractor believed `X-Real-IP` and others of any client. Name your proxies, and the one
    // header that they write:
    //
    //     key::client_ip().behind(Proxies::networks(["10.0.0.0/8"]), Source::XRealIp)

    // .use_headers().finish(), and .error_handler(|error| ...)
    let limits = RateLimitLayer::new(MemoryStore::new(), policy)
        .headers([
            HeaderStyle::XRateLimit(Reset::Delta),
            HeaderStyle::custom(After),
        ])
        .on_refused(|refused| {
            // Rounded up as in `Retry-After`; a `Duration` rounded down would send clients back too early.
            let error =
                json!({ "error": "slow down", "retry_after_secs": refused.retry_after_secs() });
            (refused.status(), Json(error))
        });

    let app = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .route("/signup", post(|| async { "welcome\n" }))
        // .layer(GovernorLayer::new(config)), and no thread that cleans up.
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
    println!(
        "each address: 5 at once, then one every 2 seconds; 2 at once to /signup, then one a minute"
    );
    println!("try:  for i in $(seq 6); do curl -i http://{address}/; done");
    println!("      for i in $(seq 3); do curl -i -X POST http://{address}/signup; done");

    // As for tower_governor: without the peer's address nothing can be counted by it. Here the answer is then 500.
    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
