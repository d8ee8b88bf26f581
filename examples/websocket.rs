//! Websockets: a layer holds two connections for each user, and a `Limiter` counts the messages of all of them.
//!
//!     cargo run --release -p tower-quota-examples --example websocket
//!
//! Serves on 127.0.0.1:3000; set `PORT` for another one (0 takes any that is free).
//!
//! In `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["axum"] }
//!     axum = { version = "0.8", features = ["ws"] }
//!     tokio = { version = "1", features = ["macros", "net", "rt-multi-thread", "time"] }

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::get;
use tower_quota::settle::Reservation;
use tower_quota::{Limit, Limiter, MemoryStore, Policy, Quota, RateLimitLayer, key};

/// Refusals in a row after which a connection is closed.
const MOST_REFUSALS: u32 = 10;

/// In bytes. The default of the library would let each connection make the server hold 16 MiB.
const LONGEST_MESSAGE: usize = 16 * 1_024;

async fn connect(
    upgrade: WebSocketUpgrade,
    user: Path<String>,
    held: Reservation,
    limiter: State<Limiter<MemoryStore>>,
) -> Response {
    // In an application the user comes from a verified token or session, not from the path.
    // Both sizes: a frame is read to its end before the message that it belongs to is measured.
    let upgrade = upgrade
        .max_message_size(LONGEST_MESSAGE)
        .max_frame_size(LONGEST_MESSAGE);
    upgrade.on_upgrade(move |socket| async move {
        // The connection counts until this is dropped. Without it, the upgrade would release the connection.
        let _held = held;
        chat(socket, user.0, limiter.0).await;
    })
}

/// Returns one unit for each started kilobyte.
fn cost(message: &Message) -> u64 {
    let length = match message {
        Message::Text(text) => text.len(),
        Message::Binary(bytes) | Message::Ping(bytes) | Message::Pong(bytes) => bytes.len(),
        Message::Close(_) => 0,
    };
    1 + length as u64 / 1_024
}

async fn chat(mut socket: WebSocket, user: String, limiter: Limiter<MemoryStore>) {
    let mut refusals = 0;
    // Every message counts, whatever its kind: pings and binary messages cost work too. Long ones cost more.
    while let Some(Ok(message)) = socket.recv().await {
        let answer = limiter.check_n_now(&user, cost(&message));
        let reply = match answer.retry_after() {
            None if answer.is_allowed() => {
                refusals = 0;
                let Message::Text(text) = message else {
                    continue;
                };
                format!("{user}: {text}")
            }
            Some(retry) => {
                refusals += 1;
                format!("slow down: try again in {} ms", retry.as_millis())
            }
            None => {
                refusals += 1;
                String::from("too long for this limit")
            }
        };
        if refusals > MOST_REFUSALS {
            let reason = "too many messages".into();
            // The client may have disconnected already.
            let _ = socket
                .send(Message::Close(Some(CloseFrame {
                    code: close_code::POLICY,
                    reason,
                })))
                .await;
            // What the client has sent meanwhile is read up to its own close frame: a socket that is dropped with unread
            // bytes is reset, and the client may never see why.
            let drained = async { while let Some(Ok(_)) = socket.recv().await {} };
            let _ = tokio::time::timeout(Duration::from_secs(5), drained).await;
            return;
        }
        if socket.send(Message::Text(reply.into())).await.is_err() {
            return;
        }
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    // 20 messages a minute for each user, 5 at once.
    let limiter = Limiter::new(
        MemoryStore::new(),
        "messages",
        Quota::per_minute(20).burst(5),
    );
    let policy = Policy::new()
        .limit(Limit::new("connections", Quota::concurrent(2)).by(key::path_parameter("user")))
        // A made-up user gets a counter, so the connections of an address are counted too.
        .limit(Limit::new("address", Quota::concurrent(20)).by(key::client_ip()));
    let layer = RateLimitLayer::new(MemoryStore::new(), policy);
    let app = Router::new()
        .route("/chat/{user}", get(connect).layer(layer))
        .with_state(limiter);

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
        "two connections for each user, 20 for each address, and 20 messages a minute, 5 at once"
    );
    println!("try:  websocat ws://{address}/chat/ann");
    axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .await
}
