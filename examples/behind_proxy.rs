//! Limits clients by their address behind a reverse proxy. Every connection comes from the proxy, which reports the
//! client's address in a header.
//!
//! You name the proxies that you trust, and the header that they write. The example also limits large IPv6 networks.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example behind_proxy
//!
//! The service listens on 127.0.0.1:3000. Set `PORT` to choose another port, or to 0 for any free port.
//!
//! Add to your `Cargo.toml`:
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

/// Greets the client by the address that the limits count by.
async fn hello(State(client): State<ClientIp>, request: Request) -> String {
    match client.address(&RequestHead::of(&request)) {
        Some(address) => format!("hello {address}\n"),
        None => String::from("hello\n"),
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    // The layer logs a warning if the named proxies look wrong. You see the warning only with a subscriber.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    // Trust the network of the load balancers, and the local machine, so that you can try the example with curl. No
    // client may connect from a trusted network. If your proxy writes another header, choose another source, such as
    // `Source::CfConnectingIp`.
    let client = key::client_ip().behind(
        Proxies::networks(["10.0.0.0/8", "127.0.0.0/8"]),
        Source::XForwardedFor,
    );

    let policy = Policy::new()
        // Counts IPv4 clients by address, and IPv6 clients by /64, the smallest network that providers assign.
        .limit(Limit::new("client", Quota::per_minute(3)).by(client.clone()))
        // Many customers get a /56 or a /48, which contain 256 or 65,536 networks of /64. Limit the larger networks
        // too.
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
    // The client wrote 1.2.3.4 itself, and the proxy appended 203.0.113.7.
    println!(
        "      curl -i -H 'x-forwarded-for: 1.2.3.4, 203.0.113.7' http://{address}/     # the same client"
    );
    println!("      curl -i -H 'x-forwarded-for: 2001:db8:1:2::3' http://{address}/");

    // `ClientIp` compares the address of the peer with your proxies, so provide the address here.
    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
