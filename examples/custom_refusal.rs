//! Refusals in the service's own words, and header fields that its clients have always read. Whatever the answer, the
//! layer adds those fields, `Retry-After` and `Cache-Control: no-store`.
//!
//!     cargo run --release -p tower-quota-examples --example custom_refusal
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

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, HeaderName};
use axum::response::{Html, IntoResponse, Response};
use axum::{Json, Router, routing::get};
use serde_json::json;
use tower_quota::{
    HeaderStyle, Limit, MemoryStore, MissingKey, Policy, Quota, RateLimitLayer, Reason, Refused,
    key,
    response::{HeaderReport, WriteHeaders},
};

/// Returns the errors of this API, or a page for people with a browser.
fn error(refused: &Refused<'_>) -> Response {
    if is_browser(refused.head().headers()) {
        // Your names of limits are in the message, and no data of the client.
        let page = format!(
            "<!doctype html><title>Slow down</title><p>{}</p>\n",
            refused.detail()
        );
        return (refused.status(), Html(page)).into_response();
    }
    let code = match refused.reason() {
        Reason::OverQuota(_) => "slow_down",
        Reason::NeverFits(_) => "too_much",
        Reason::MissingKey(_) => "no_api_key",
        Reason::Blocked => "forbidden",
        _ => "try_again",
    };
    // Rounded up: a client that comes back sooner is refused again.
    let retry = refused
        .retry_after()
        .map_or(0, |wait| wait.as_micros().div_ceil(1_000));
    let body = Json(json!({ "code": code, "retry_ms": retry }));
    (refused.status(), body).into_response()
}

/// Writes a pair of fields per window: `X-RateLimit-Limit-Minute: 3` and `X-RateLimit-Remaining-Minute: 2`.
struct PerWindow;

static FIELDS: [HeaderName; 4] = [
    HeaderName::from_static("x-ratelimit-limit-minute"),
    HeaderName::from_static("x-ratelimit-remaining-minute"),
    HeaderName::from_static("x-ratelimit-limit-hour"),
    HeaderName::from_static("x-ratelimit-remaining-hour"),
];

impl WriteHeaders for PerWindow {
    fn fields(&self) -> &'static [HeaderName] {
        &FIELDS
    }

    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
        for limit in report.limits() {
            let first = match limit.quota().period().as_secs() {
                60 => 0,
                3_600 => 2,
                _ => continue,
            };
            headers.insert(&FIELDS[first], limit.capacity().into());
            headers.insert(&FIELDS[first + 1], limit.remaining().into());
        }
    }
}

fn is_browser(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"))
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let policy = Policy::new()
        .limit(
            Limit::new("minute", Quota::per_minute(3))
                .by(key::header("x-api-key"))
                .when_missing(MissingKey::Refuse),
        )
        // Made-up keys get a fresh counter each: their address is counted too.
        .limit(Limit::new("address", Quota::per_hour(600)).by(key::client_ip()));

    let limits = RateLimitLayer::new(MemoryStore::new(), policy)
        .on_refused(error)
        // Styles that write different fields go together.
        .headers([HeaderStyle::Draft7, HeaderStyle::custom(PerWindow)])
        // Clients that were refused together do not come back together.
        .retry_jitter(Duration::from_secs(2));
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
    println!("each API key: 3 a minute");
    println!("try:  for i in $(seq 4); do curl -i -H 'x-api-key: ann' http://{address}/; done");
    println!(
        "      curl -i http://{address}/                              # no key: 400, in the same form"
    );
    println!("      curl -i -H 'accept: text/html' http://{address}/       # a page");

    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
