//! Behind a reverse proxy: every connection comes from the proxy, which reports the client's address in a header. Only
//! the proxies named here are trusted, and only in one header. Large IPv6 networks are counted too.
//!
//!     cargo run --release -p tower-quota-examples --example behind_proxy
//!
//! Serves on 127.0.0.1:3000; set `PORT` for another one (0 takes any that is free).
//!
//! In `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum"] }
//!     axum = "0.8"
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }
//!     tracing-subscriber = "0.3"

use std::io;
use std::net::SocketAddr;

use axum::extract::{Request, State};
use axum::{Router, routing::get};
use tower_quota::key::{ClientIp, Proxies, Source};
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, RequestHead, key};

/// Returns the client's address, the one that limits count by.
async fn hello(State(client): State<ClientIp>, request: Request) -> String {
    match client.address(&RequestHead::of(&request)) {
        Some(address) => format!("hello {address}\n"),
        None => String::from("hello\n"),
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    // Wrong proxies are logged, and silent without a subscriber.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    // The load balancers' network, and this machine, so that curl can act as the proxy. No client may be in these
    // networks. For a proxy that sets a header of its own, name that one: `Source::CfConnectingIp`, for example.
    let client = key::client_ip().behind(
        Proxies::networks(["10.0.0.0/8", "127.0.0.0/8"]),
        Source::XForwardedFor,
    );

    let policy = Policy::new()
        // IPv4 by the address, IPv6 by its first 64 bits: the smallest network that a provider gives to a customer.
        .limit(Limit::new("client", Quota::per_minute(3)).by(client.clone()))
        // Many customers get a /56 or /48, which is 256 or 65,536 such networks: these share larger quotas.
        .limit(Limit::new("home", Quota::per_minute(6)).by(client.clone().prefix_v6(56)))
        .limit(Limit::new("site", Quota::per_minute(12)).by(client.clone().prefix_v6(48)));

    let app = Router::new()
        .route("/", get(hello))
        .with_state(client)
        .layer(RateLimitLayer::new(MemoryStore::new(), policy));

    let address = format!(
        "127.0.0.1:{}",
        std::env::var("PORT").unwrap_or_else(|_| "3000".into())
    );
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .inspect_err(|_| eprintln!("cannot listen on {address}; set PORT to another port"))?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    println!("a minute: 3 for each client, 6 for each /56 of IPv6, 12 for each /48");
    println!("try:  curl -i -H 'x-forwarded-for: 203.0.113.7' http://{address}/");
    // The client claims to be 1.2.3.4; the proxy saw 203.0.113.7.
    println!(
        "      curl -i -H 'x-forwarded-for: 1.2.3.4, 203.0.113.7' http://{address}/     # the same client"
    );
    println!("      curl -i -H 'x-forwarded-for: 2001:db8:1:2::3' http://{address}/");

    // The service must see which proxy is calling.
    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
