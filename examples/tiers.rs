//! Gives accounts the quota of their tier, such as free, pro or enterprise. The layer looks up the account of the API
//! key before the handler runs.
//!
//! The example also skips health checks, and blocks paths that only scanners request.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example tiers
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

use axum::http::HeaderMap;
use axum::{Extension, Router, routing::get};
use tower_quota::{Limit, MemoryStore, MissingKey, Policy, Quota, RateLimitLayer, key, when};

/// The account of an API key.
#[derive(Clone)]
struct Account {
    name: &'static str,
    tier: Tier,
}

#[derive(Clone, Copy)]
enum Tier {
    Free,
    Pro,
    /// A negotiated number of requests a minute.
    Enterprise(u64),
}

impl Tier {
    /// Returns the quota of the tier, or `None` for the default quota of the limit.
    fn quota(self) -> Option<Quota> {
        match self {
            Self::Free => None,
            Self::Pro => Some(Quota::per_minute(600).burst(100)),
            Self::Enterprise(per_minute) => {
                Quota::try_new(per_minute, Duration::from_secs(60)).ok()
            }
        }
    }
}

/// Replace with your database behind a cache. Let the cache remember unknown keys too.
async fn account_of(api_key: String) -> Option<Account> {
    match api_key.as_str() {
        "key-of-fay" => Some(Account {
            name: "fay",
            tier: Tier::Free,
        }),
        "key-of-pat" => Some(Account {
            name: "pat",
            tier: Tier::Pro,
        }),
        // The two keys of the account share one counter.
        "key-1-of-acme" | "key-2-of-acme" => Some(Account {
            name: "acme",
            tier: Tier::Enterprise(20_000),
        }),
        _ => None,
    }
}

fn api_key(headers: &HeaderMap) -> Option<String> {
    headers.get("x-api-key")?.to_str().ok().map(String::from)
}

async fn hello(account: Option<Extension<Account>>) -> String {
    format!(
        "hello {}\n",
        account.map_or("stranger", |Extension(account)| account.name)
    )
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let policy = Policy::new()
        .skip(when::path("/healthz"))
        .block(when::any([
            when::path("/.env"),
            when::path("/wp-login.php"),
        ]))
        .look_up(Duration::from_millis(50), |head| {
            let api_key = api_key(head.headers());
            async move { account_of(api_key?).await }
        })
        .limit(
            Limit::new("account", Quota::per_minute(3))
                .by(key::from_fn("account", |head| {
                    Some(head.extensions().get::<Account>()?.name)
                }))
                .quota_with(|head| head.extensions().get::<Account>()?.tier.quota())
                .when_missing(MissingKey::Skip),
        )
        // Limits requests without an account by address, including requests with an unknown key.
        .limit(
            Limit::new("strangers", Quota::per_minute(2))
                .by(key::client_ip())
                .unless(|head| head.extensions().get::<Account>().is_some()),
        );

    let flood = Policy::new()
        .skip(when::path("/healthz"))
        .limit(Limit::new("flood", Quota::per_second(100)).by(key::client_ip()));

    let app = Router::new()
        .route("/", get(hello))
        .route("/healthz", get(|| async { "well\n" }))
        .layer(RateLimitLayer::new(MemoryStore::new(), policy))
        // The last layer runs first, and refuses a flood of unknown keys before your database sees the keys.
        .layer(RateLimitLayer::new(MemoryStore::new(), flood).headers([]));

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
        "a minute: 2 for strangers, 3 for free accounts, 600 for pro, a negotiated quota for enterprises"
    );
    println!("try:  curl -i http://{address}/                                   # by address");
    println!(
        "      curl -i -H 'x-api-key: key-of-fay' http://{address}/        # free; also key-of-pat, key-1-of-acme"
    );
    println!("      curl -i http://{address}/.env                               # 403");

    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
