//! The server of the guide to soft limits, which ends connections after marked refusals.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use bytes::Bytes;
use http::Request;
use http_body_util::Empty;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tower_quota::{CloseConnection, Policy, key};

use crate::shared::{limited, three, within};

async fn serve_connection(app: Router, stream: TcpStream, peer: SocketAddr) {
    let closing = Arc::new(Notify::new());
    let close = Arc::clone(&closing);
    let mark = map_response(move |response: Response| {
        if response.extensions().get::<CloseConnection>().is_some() {
            close.notify_one();
        }
        async { response }
    });
    let server = Builder::new(TokioExecutor::new());
    let service = TowerToHyperService::new(app.layer(Extension(peer)).layer(mark));
    let mut connection = pin!(server.serve_connection_with_upgrades(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = closing.notified() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

#[tokio::test]
async fn marked_refusal_ends_http2_connection() {
    let policy = Policy::new()
        .limit(three().by(key::client_ip()))
        .close_after(2);
    let layer = limited(policy, false);
    let app = Router::new().route("/", get(async || "hello")).layer(layer);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap());
    let stream = TokioIo::new(stream.await.unwrap());
    let (served, peer) = listener.accept().await.unwrap();
    let server = tokio::spawn(serve_connection(app, served, peer));

    let client = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream);
    let (mut requests, connection) = client.await.unwrap();
    let connection = tokio::spawn(connection);
    for expected in [200, 200, 200, 429, 429] {
        let request = Request::get("http://test/").body(Empty::<Bytes>::new());
        let answer = within(requests.send_request(request.unwrap())).await;
        assert_eq!(answer.unwrap().status(), expected);
    }
    // The client did not end the connection.
    within(connection).await.unwrap().unwrap();
    within(server).await.unwrap();
    assert!(requests.is_closed());
}
