//! A login: only wrong passwords count, also when they are tried at the same time. While the store is unavailable, logins
//! are refused.
//!
//!     cargo run --release -p tower-quota-examples --example login
//!
//! Counts in memory, or in Redis when `REDIS_URL` is set. Serves on 127.0.0.1:3000; set `PORT` for another one (0 takes
//! any that is free).
//!
//! In `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum", "redis"] }
//!     axum = "0.8"
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::{Router, routing::post};
use tower_quota::{
    BoxStore, Limit, MemoryStore, MissingKey, OnStoreFailure, Policy, Quota, RateLimitLayer,
    RedisStore, key, settle,
};

/// Stands for a look at the password's hash: lets `ann` in, whose password is `secret`.
async fn login(headers: HeaderMap) -> Result<&'static str, StatusCode> {
    match headers.get(AUTHORIZATION) {
        Some(sent) if sent == "Basic YW5uOnNlY3JldA==" => Ok("welcome\n"),
        _ => Err(StatusCode::UNAUTHORIZED),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let policy = Policy::new()
        // Guesses of one account's password from one address: at most 5 in any 15 minutes. Counted by address and name
        // together, so an attacker at another address cannot lock Ann out.
        .limit(
            Limit::new(
                "login-guesses",
                Quota::new(5, Duration::from_secs(900)).sliding_log(),
            )
            .by(key::all((key::client_ip(), key::basic_user())))
            // Requests without credentials guess nothing, and `login-name` refuses them.
            .when_missing(MissingKey::Skip)
            .settle(settle::only_failures()),
        )
        // One password tried on many accounts.
        .limit(
            Limit::new("login-address", Quota::per_hour(20).sliding_log())
                .by(key::client_ip())
                // Browsers send no credentials at first: 401, uncounted.
                .when(|head| head.headers().contains_key("authorization"))
                .settle(settle::only_failures()),
        )
        // Guesses of one account's password from many addresses. A large quota, because attackers can use it up to lock
        // Ann out.
        .limit(
            Limit::new("login-name", Quota::per_hour(100).sliding_log())
                .by(key::basic_user())
                .when_missing(MissingKey::Unauthenticated)
                .settle(settle::only_failures()),
        )
        // Uncounted guesses would be worse than no logins: 503 until the store is available again.
        .on_store_failure(OnStoreFailure::Refuse);

    let store = match std::env::var("REDIS_URL") {
        // Lazily: the service starts also while Redis is away.
        Ok(url) => BoxStore::new(RedisStore::options().connect_lazily().connect(&url).await?),
        Err(_) => BoxStore::new(MemoryStore::new()),
    };
    let limits = RateLimitLayer::new(store, policy)
        .on_store_error(|error| eprintln!("logins are refused: {error}"));
    let app = Router::new().route("/login", post(login).layer(limits));

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
        "5 wrong passwords in 15 minutes for each name and address; right ones are not counted"
    );
    println!("try:  curl -i -X POST -u ann:secret http://{address}/login");
    println!(
        "      for i in $(seq 7); do curl -s -o /dev/null -w '%{{http_code}}\\n' -X POST -u ann:$i \\"
    );
    println!("        http://{address}/login; done");

    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await?;
    Ok(())
}
