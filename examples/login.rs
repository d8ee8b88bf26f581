//! Protects a login. Only wrong passwords count, even if an attacker sends many guesses at the same time. While the
//! store is unavailable, the service refuses logins.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example login
//!
//! Set `REDIS_URL` to keep the counters in Redis instead of in memory. The service listens on 127.0.0.1:3000. Set
//! `PORT` to choose another port, or to 0 for any free port.
//!
//! Add to your `Cargo.toml`:
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

/// Replace with a check of the password hash. The example accepts `ann` with the password `secret`.
async fn login(headers: HeaderMap) -> Result<&'static str, StatusCode> {
    match headers.get(AUTHORIZATION) {
        Some(sent) if sent == "Basic YW5uOnNlY3JldA==" => Ok("welcome\n"),
        _ => Err(StatusCode::UNAUTHORIZED),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let policy = Policy::new()
        // From one address, allow 5 wrong guesses for an account in any 15 minutes. Because the key combines address
        // and name, an attacker at another address cannot lock Ann out.
        .limit(
            Limit::new(
                "login-guesses",
                Quota::new(5, Duration::from_secs(900)).sliding_log(),
            )
            .by(key::all((key::client_ip(), key::basic_user())))
            // `login-name` refuses requests without credentials.
            .when_missing(MissingKey::Skip)
            .settle(settle::only_failures()),
        )
        // Stops an address that tries one password on many accounts.
        .limit(
            Limit::new("login-address", Quota::per_hour(20).sliding_log())
                .by(key::client_ip())
                // Browsers send no credentials at first. Answer 401 and do not count the request.
                .when(|head| head.headers().contains_key("authorization"))
                .settle(settle::only_failures()),
        )
        // Stops many addresses that guess the password of one account. Keep the quota large, because attackers can
        // exhaust the quota to lock Ann out.
        .limit(
            Limit::new("login-name", Quota::per_hour(100).sliding_log())
                .by(key::basic_user())
                .when_missing(MissingKey::Unauthenticated)
                .settle(settle::only_failures()),
        )
        // Unlimited guesses would be worse than no logins, so answer 503 until the store is available again.
        .on_store_failure(OnStoreFailure::Refuse);

    let store = match std::env::var("REDIS_URL") {
        Ok(url) => BoxStore::new(
            RedisStore::options()
                // Name your service. Two services with one prefix share their counters.
                .prefix("login")
                // Start even if Redis is unavailable.
                .connect_lazily()
                .connect(&url)
                .await?,
        ),
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
        "5 wrong passwords in 15 minutes for each name and address; right passwords do not count"
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
