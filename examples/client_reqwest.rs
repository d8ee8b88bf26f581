//! Throttles a reqwest client. The `Client` of reqwest is a tower service, so you can wrap the client in a layer.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example client_reqwest
//!
//! The example ends after about a second. The API is a server in the same process.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum", "throttle"] }
//!     axum = "0.8"
//!     reqwest = { version = "0.12", default-features = false }
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }
//!     tower = { version = "0.5", features = ["util"] }

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::{Router, routing::get};
use reqwest::Url;
use tower::{Layer, Service, ServiceExt};
use tower_quota::{Limiter, MemoryStore, Quota, ThrottleLayer, throttle, throttle::ThrottleError};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = start_api().await?;

    // The API allows 10 requests a second. An even stream of a little less leaves room for the network. A request waits
    // up to 5 seconds.
    let limiter = Limiter::new(
        MemoryStore::new(),
        "requests",
        Quota::per_minute(570).leaky_bucket(),
    );
    let host = |request: &reqwest::Request| request.url().host_str().unwrap_or_default().to_owned();
    let throttle = ThrottleLayer::new(limiter, host)
        .max_wait(Duration::from_secs(5))
        // `remote_headers` reads responses of the crate `http`, but reqwest has another response type.
        .pushback(|response: &reqwest::Response| {
            throttle::pushback(response.status(), response.headers())
        });
    let mut client = throttle.layer(reqwest::Client::new());

    let start = Instant::now();
    for number in 1..=3 {
        let request = reqwest::Request::new(reqwest::Method::GET, url.clone());
        match client.ready().await?.call(request).await {
            // The API refused with `Retry-After: 1`, so the throttle delays the next request by a second.
            Ok(response) if response.status() == StatusCode::TOO_MANY_REQUESTS => {
                println!(
                    "request {number}: refused by the API after {} ms",
                    start.elapsed().as_millis()
                );
            }
            Ok(response) => {
                println!(
                    "request {number}: {} after {} ms",
                    response.text().await?.trim(),
                    start.elapsed().as_millis()
                );
            }
            // The throttle refused the request without sending it.
            Err(ThrottleError::Throttled(refusal)) => {
                println!("request {number}: not sent, {refusal}")
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Starts an API that refuses the first request, and returns the URL.
async fn start_api() -> Result<Url, Box<dyn Error>> {
    static REQUESTS: AtomicU32 = AtomicU32::new(0);
    let answer = || async {
        match REQUESTS.fetch_add(1, Ordering::Relaxed) {
            0 => (
                StatusCode::TOO_MANY_REQUESTS,
                [("retry-after", "1")],
                "not now\n",
            )
                .into_response(),
            _ => "hello\n".into_response(),
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = Url::parse(&format!("http://{}/", listener.local_addr()?))?;
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", get(answer))).await });
    Ok(url)
}
