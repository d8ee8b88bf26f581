//! Limits websockets. The layer allows two concurrent connections for every user, and a `Limiter` counts the messages
//! of all connections of the user.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example websocket
//!
//! The service listens on 127.0.0.1:3000. Set `PORT` to choose another port, or to 0 for any free port.
//!
//! Add to your `Cargo.toml`:
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

/// The most refusals in a row before the server closes the connection.
const MOST_REFUSALS: u32 = 10;

/// In bytes. With the default of the library, a connection could make the server buffer 16 MiB.
const LONGEST_MESSAGE: usize = 16 * 1_024;

async fn connect(
    upgrade: WebSocketUpgrade,
    user: Path<String>,
    reservation: Reservation,
    limiter: State<Limiter<MemoryStore>>,
) -> Response {
    // Take the user from a verified token or session in your application, not from the path.
    // Limit the size of frames too, because the server reads a whole frame before checking the size of the message.
    let upgrade = upgrade
        .max_message_size(LONGEST_MESSAGE)
        .max_frame_size(LONGEST_MESSAGE);
    upgrade.on_upgrade(move |socket| async move {
        // Keep the reservation while the connection is open. Otherwise the layer would release the connection's unit
        // when the upgrade is answered.
        let _reservation = reservation;
        chat(socket, user.0, limiter.0).await;
    })
}

/// Returns a cost of one unit, plus one for every full kilobyte.
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
    // Count messages of every kind, because pings and binary messages cost work too. Long messages cost more.
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
            // Read until the client closes too. If you drop a socket with unread bytes, the system resets the
            // connection, and the client may never see the reason.
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
    // A user sends 20 messages a minute, with bursts of 5.
    let limiter = Limiter::new(
        MemoryStore::new(),
        "messages",
        Quota::per_minute(20).burst(5),
    );
    let policy = Policy::new()
        .limit(Limit::new("connections", Quota::concurrent(2)).by(key::path_parameter("user")))
        // A client could invent users, so limit the connections of an address too.
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
