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
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, Response};
use axum::{Router, routing::get};
use tower_quota::{
    HeaderStyle, Limit, MemoryStore, MissingKey, Negotiated, Policy, Quota, RateLimitLayer, Reason,
    Refusal, RefusalBody, Refused, key,
};

/// The errors of this API. People with a browser get the page that they would have got anyway.
struct ApiErrors;

impl Refusal for ApiErrors {
    fn respond(&self, refused: &Refused<'_>) -> Response<RefusalBody> {
        if is_browser(refused.head().headers()) {
            return Negotiated.respond(refused);
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
        let mut response =
            Response::new(format!("{{\"code\":\"{code}\",\"retry_ms\":{retry}}}\n").into());
        *response.status_mut() = refused.status();
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
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
        .limit(Limit::new("address", Quota::per_minute(60)).by(key::client_ip()));

    let limits = RateLimitLayer::new(MemoryStore::new(), policy)
        .refusal(ApiErrors)
        // Styles that write different fields go together: `RateLimit` as in draft 7, `X-RateLimit-...` as GitHub's.
        .headers([HeaderStyle::Draft7, HeaderStyle::GitHub])
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
