//! Websockets behind a concurrency limit, with and without the reservation in the task of the socket.

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::routing::any;
use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::{ClientRequestBuilder, Message};
use tower_quota::settle::Reservation;
use tower_quota::{Check, Key, Limit, MemoryStore, Policy, Quota, RateLimitLayer};

use crate::shared::within;

#[tokio::test]
async fn websocket_without_reservation_is_reported() {
    for (is_kept, mistakes, left) in [(false, 1, 2), (true, 0, 1)] {
        let policy = Policy::new().limit(Limit::new("sockets", Quota::concurrent(2)));
        let layer = RateLimitLayer::new(MemoryStore::new(), policy);
        let handle = layer.handle();
        let connect = move |upgrade: WebSocketUpgrade, reservation: Reservation| async move {
            let kept = is_kept.then_some(reservation);
            upgrade.on_upgrade(move |mut socket| async move {
                let _kept = kept;
                while let Some(Ok(message)) = socket.recv().await {
                    socket.send(message).await.unwrap();
                }
            })
        };
        let app = Router::new().route("/", any(connect)).layer(layer);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(axum::serve(listener, app).into_future());

        let uri = format!("ws://{address}/").parse().unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let handshake = client_async(ClientRequestBuilder::new(uri), stream);
        let (mut socket, response) = within(handshake).await.unwrap();
        assert_eq!(response.status(), 101);
        // The echo proves that the server has taken the response.
        within(socket.send(Message::text("echo"))).await.unwrap();
        within(socket.next()).await.unwrap().unwrap();
        assert_eq!(handle.mistakes().count(Check::UnheldUpgrade), mistakes);
        let status = handle.peek("sockets", &Key::EVERYONE).await.unwrap();
        assert_eq!(status.remaining(), left);
    }
}
