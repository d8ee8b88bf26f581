//! Websockets and server-sent events behind the limit, within the ordinary stack and around it.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::response::Sse;
use axum::response::sse::Event;
use axum::routing::{any, get};
use futures_util::{SinkExt, Stream, StreamExt, stream};
use http::{Request, Response};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message};
use tower::ServiceBuilder;

use crate::axum_apps::ordinary;
use crate::limited::{limited_by, three_per_minute};
use crate::server::{
    Server, assert_admitted, assert_fields, assert_refused, assert_refused_head, next_frame, read,
    within,
};

/// Returns an app in each of three places: within the ordinary stack, around it, and on routes; with both stores.
fn limited_apps(app: &Router) -> Vec<Router> {
    let apps = [false, true].map(|is_slow| {
        let limited = limited_by(three_per_minute(), is_slow);
        let routes_only = limited_by(three_per_minute(), is_slow);
        [
            app.clone().layer(
                ordinary!(ServiceBuilder::new()).layer(limited_by(three_per_minute(), is_slow)),
            ),
            app.clone()
                .layer(ordinary!(ServiceBuilder::new().layer(limited))),
            app.clone().route_layer(routes_only),
        ]
    });
    apps.into_iter().flatten().collect()
}

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if socket.send(message).await.is_err() {
            return;
        }
    }
}

async fn connect(
    server: &Server,
) -> Result<(WebSocketStream<TcpStream>, Response<Option<Vec<u8>>>), Error> {
    let stream = TcpStream::connect(server.address).await.unwrap();
    within(tokio_tungstenite::client_async(
        format!("ws://{}/", server.address),
        stream,
    ))
    .await
}

#[tokio::test]
async fn websocket_is_one_request() {
    let app = Router::new().route(
        "/",
        any(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(echo) }),
    );
    for app in limited_apps(&app) {
        let server = Server::of_app(app).await;
        let (mut socket, response) = connect(&server).await.unwrap();
        assert_eq!(response.status(), 101);
        assert_fields(&response, "2");
        // Messages cost nothing.
        for text in ["one", "two", "three", "four"] {
            within(socket.send(Message::text(text))).await.unwrap();
            assert_eq!(
                within(socket.next()).await.unwrap().unwrap(),
                Message::text(text)
            );
        }
        drop((
            connect(&server).await.unwrap(),
            connect(&server).await.unwrap(),
        ));
        let Err(Error::Http(refused)) = connect(&server).await else {
            panic!("it should have been refused")
        };
        assert_refused_head(&refused);
        // The first is still open.
        within(socket.send(Message::text("five"))).await.unwrap();
        assert_eq!(
            within(socket.next()).await.unwrap().unwrap(),
            Message::text("five")
        );
    }
}

/// Returns two events; the last is sent only after `last` is notified.
fn events(last: Arc<Notify>) -> impl Stream<Item = Result<Event, Infallible>> {
    let first = stream::once(async { Ok(Event::default().data("first")) });
    first.chain(stream::once(async move {
        last.notified().await;
        Ok(Event::default().data("last"))
    }))
}

#[tokio::test]
async fn first_event_arrives_before_last() {
    let last = Arc::new(Notify::new());
    let notified = Arc::clone(&last);
    let app = Router::new().route("/", get(move || async move { Sse::new(events(notified)) }));
    for app in limited_apps(&app) {
        let server = Server::of_app(app).await;
        for left in ["2", "1", "0"] {
            let mut response = server
                .open(Request::get("/").header("accept-encoding", "gzip"), b"")
                .await;
            assert_admitted(&response, left);
            assert_eq!(next_frame(response.body_mut()).await, "data: first\n\n");
            last.notify_one();
            assert_eq!(read(response).await.body(), "data: last\n\n");
        }
        assert_refused(&server.get("/").await);
    }
}
