//! Throttles the client of hyper-util, so that your program respects the limits of a third party's API.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example client_hyper
//!
//! The example ends after about two seconds. The API is a server in the same process.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum", "throttle"] }
//!     axum = "0.8"
//!     hyper-util = { version = "0.1", features = ["client-legacy", "http1", "tokio"] }
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }
//!     tower = { version = "0.5", features = ["util"] }

use std::error::Error;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use axum::{Router, routing::get};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tower::{Layer, Service, ServiceExt};
use tower_quota::throttle::remote_headers;
use tower_quota::{
    Limit, Limiter, MemoryStore, Policy, Quota, RateLimitLayer, ThrottleLayer,
    throttle::ThrottleError,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = start_api().await?;

    // The documentation of the API allows 10 requests a second, with bursts of 5. A request waits up to 3 seconds.
    let limiter = Limiter::new(
        MemoryStore::new(),
        "requests",
        Quota::per_second(10).burst(5),
    );
    let host = |request: &Request<Body>| request.uri().host().unwrap_or_default().to_owned();
    let throttle = ThrottleLayer::new(limiter, host)
        .max_wait(Duration::from_secs(3))
        // The API really allows less, and says so in the headers of every response. The throttle obeys the headers.
        .pushback(remote_headers);
    let client = Client::builder(TokioExecutor::new()).build_http();
    let mut client = throttle.layer(client);

    let start = Instant::now();
    for number in 1..=6 {
        let response = client
            .ready()
            .await?
            .call(Request::get(&url).body(Body::empty())?)
            .await?;
        println!(
            "request {number}: {} after {} ms",
            response.status().as_u16(),
            start.elapsed().as_millis()
        );
    }

    // For requests that cannot wait, use a clone of the layer. Clones share the counters and the pauses of the API.
    let mut urgent = throttle.max_wait(Duration::ZERO).layer(client.into_inner());
    match urgent
        .ready()
        .await?
        .call(Request::get(&url).body(Body::empty())?)
        .await
    {
        Ok(response) => println!("urgent request: {}", response.status().as_u16()),
        // The throttle refused the request without sending it.
        Err(ThrottleError::Throttled(refusal)) => println!("urgent request: not sent, {refusal}"),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Starts an API that allows 5 requests a second with bursts of 2, and returns the URL.
async fn start_api() -> std::io::Result<String> {
    let limits = Policy::new().limit(Limit::new("api", Quota::per_second(5).burst(2)));
    let api = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .layer(RateLimitLayer::new(MemoryStore::new(), limits));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, api).await });
    Ok(url)
}
