//! Refuses requests with your own error format, and writes the header fields that your clients already read. The layer
//! adds the fields, `Retry-After` and `Cache-Control: no-store` to every refusal.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example custom_refusal
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

/// Returns an error in the format of your API, or a page for browsers.
fn refuse(refused: &Refused<'_>) -> Response {
    if is_browser(refused.head().headers()) {
        // The detail contains the names of your limits, but no data of the client, so the page needs no escaping.
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
    // Round up, because a client that retries too early is refused again.
    let retry = refused
        .retry_after()
        .map_or(0, |wait| wait.as_micros().div_ceil(1_000));
    let body = Json(json!({ "code": code, "retry_ms": retry }));
    (refused.status(), body).into_response()
}

/// Writes `X-RateLimit-Limit-Minute` and `X-RateLimit-Remaining-Minute`, and the same fields for the hour.
struct PerWindow;

// Constants, because the map takes a name by value.
const LIMIT_MINUTE: HeaderName = HeaderName::from_static("x-ratelimit-limit-minute");
const REMAINING_MINUTE: HeaderName = HeaderName::from_static("x-ratelimit-remaining-minute");
const LIMIT_HOUR: HeaderName = HeaderName::from_static("x-ratelimit-limit-hour");
const REMAINING_HOUR: HeaderName = HeaderName::from_static("x-ratelimit-remaining-hour");

static FIELDS: [HeaderName; 4] = [LIMIT_MINUTE, REMAINING_MINUTE, LIMIT_HOUR, REMAINING_HOUR];

impl WriteHeaders for PerWindow {
    fn fields(&self) -> &'static [HeaderName] {
        &FIELDS
    }

    fn write(&self, report: &HeaderReport<'_>, headers: &mut HeaderMap) {
        for limit in report.limits() {
            let (capacity, remaining) = match limit.quota().period().as_secs() {
                60 => (LIMIT_MINUTE, REMAINING_MINUTE),
                3_600 => (LIMIT_HOUR, REMAINING_HOUR),
                _ => continue,
            };
            headers.insert(capacity, limit.capacity().into());
            headers.insert(remaining, limit.remaining().into());
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
        // A client could send a new key with every request, so limit the address too.
        .limit(Limit::new("address", Quota::per_hour(600)).by(key::client_ip()));

    let limits = RateLimitLayer::new(MemoryStore::new(), policy)
        .on_refused(refuse)
        // You can combine styles that write different fields.
        .headers([HeaderStyle::Draft7, HeaderStyle::custom(PerWindow)])
        // Add jitter, so that clients refused together do not retry together.
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
