//! Ports a service from tower_governor to tower-quota. You see the old code in the comment above the new lines.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example from_tower_governor
//!
//! Read `docs/guide/from_tower_governor.md` for a table of all options, and for the differences to watch. For example,
//! `per_second(2)` of tower_governor means a request every two seconds.
//!
//! The service listens on 127.0.0.1:3000. Set `PORT` to choose another port, or to 0 for any free port.
//!
//! Add to your `Cargo.toml`:
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

/// Writes `X-RateLimit-After`, the seconds to wait, for clients that read the field of tower_governor.
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
        // .per_second(60).burst_size(2), in a second governor on `/signup`
        .limit(
            Limit::new("signup", Quota::new(1, Duration::from_secs(60)).burst(2))
                .by(key::client_ip())
                .when(when::path("/signup")),
        );
    // Behind a proxy, SmartIpKeyExtractor believes headers such as `X-Real-IP` from any client. Name your proxies and
    // the header that your proxies write instead:
    //
    //     key::client_ip().behind(Proxies::networks(["10.0.0.0/8"]), Source::XRealIp)

    // .use_headers().finish(), and .error_handler(|error| ...)
    let limits = RateLimitLayer::new(MemoryStore::new(), policy)
        .headers([
            HeaderStyle::XRateLimit(Reset::Delta),
            HeaderStyle::custom(After),
        ])
        .on_refused(|refused| {
            // `retry_after_secs` rounds up like `Retry-After`, so that clients do not retry too early.
            let error =
                json!({ "error": "slow down", "retry_after_secs": refused.retry_after_secs() });
            (refused.status(), Json(error))
        });

    let app = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .route("/signup", post(|| async { "welcome\n" }))
        // .layer(GovernorLayer::new(config)). You no longer need a thread that removes old keys.
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

    // As with tower_governor, provide the address of the peer. Without the address, requests get 500.
    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
