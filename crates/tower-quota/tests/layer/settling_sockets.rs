//! Handlers that panic, clients that disconnect, tasks that outlive their request: over real sockets.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::routing::get;
use axum::{Extension, Router};
use bytes::Bytes;
use http_body::Frame;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tower_quota::settle::{Reservation, Settle, body_bytes, by_handler};
use tower_quota::{Limit, RateLimitLayer};

use crate::axum_apps::{ask, served};
use crate::fixture::{ScriptedStore, StoreControl};
use crate::shared::{per_hour, policy_of, secs};

fn limit() -> Limit {
    per_hour("limit", 1_000_000_000).cost(10)
}

async fn app(store: &ScriptedStore, limit: Limit, router: Router) -> SocketAddr {
    served(router.layer(RateLimitLayer::new(store.clone(), policy_of(limit)))).await
}

/// Returns a connection on which a request has been sent.
async fn sent(app: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(app).await.unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: test\r\n\r\n")
        .await
        .unwrap();
    stream
}

#[tokio::test]
async fn handler_settles_by_reservation() {
    let store = ScriptedStore::new();
    let handler = |Extension(reservation): Extension<Reservation>| async move {
        let _ = reservation.settle("limit", 4);
        "hello"
    };
    let app = app(
        &store,
        limit().settle(by_handler()),
        Router::new().route("/", get(handler)),
    )
    .await;
    assert!(ask(app, "GET", "/").await.ends_with("hello"));
    store.until_settled(&[("refund", &[6])]).await;
}

#[cfg(feature = "axum")]
#[tokio::test]
async fn reservation_extractor_never_refuses() {
    let store = ScriptedStore::new();
    let handler =
        |reservation: Reservation| async move { format!("{:?}", reservation.settle("limit", 4)) };
    let settling = app(
        &store,
        limit().settle(by_handler()),
        Router::new().route("/", get(handler)),
    )
    .await;
    assert!(ask(settling, "GET", "/").await.ends_with("true"));
    store.until_settled(&[("refund", &[6])]).await;
    let plain = app(&store, limit(), Router::new().route("/", get(handler))).await;
    assert!(ask(plain, "GET", "/").await.ends_with("false"));
}

async fn panic() {
    std::panic::resume_unwind(Box::new("a panic without its message"))
}

#[tokio::test]
async fn panicking_handler_abandons_its_request() {
    let (kept, refunded) = (ScriptedStore::new(), ScriptedStore::new());
    let limits = [
        (&kept, limit().settle(by_handler())),
        (&refunded, limit().on_abandoned(Settle::Refund)),
    ];
    for (store, limit) in limits {
        let app = app(store, limit, Router::new().route("/", get(panic))).await;
        // The connection is closed without a response.
        assert_eq!(ask(app, "GET", "/").await, "");
    }
    refunded.until_settled(&[("refund", &[10])]).await;
    assert!(kept.settled().is_empty());
}

#[tokio::test]
async fn disconnected_client_cancels_its_handler() {
    let store = ScriptedStore::new();
    let started = Arc::new(Notify::new());
    let start = Arc::clone(&started);
    let handler = move || async move {
        start.notify_one();
        std::future::pending::<()>().await;
    };
    let app = app(
        &store,
        limit().on_abandoned(Settle::Refund),
        Router::new().route("/", get(handler)),
    )
    .await;
    let stream = sent(app).await;
    started.notified().await;
    assert!(store.settled().is_empty());
    drop(stream);
    store.until_settled(&[("refund", &[10])]).await;
}

const FRAME: &[u8] = &[b'x'; 10_000];

/// A body of frames without an end.
struct Endless;

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(FRAME)))))
    }
}

#[tokio::test]
async fn disconnected_client_pays_for_bytes_sent() {
    let store = ScriptedStore::new();
    let handler = || async { Body::new(Endless) };
    let limit = limit().cost(1).settle(body_bytes(10_000));
    let app = app(&store, limit, Router::new().route("/", get(handler))).await;
    let mut stream = sent(app).await;
    let mut some = vec![0; 5 * FRAME.len()];
    stream.read_exact(&mut some).await.unwrap();
    assert!(store.settled().is_empty());
    drop(stream);
    let done = async {
        while store.settled().is_empty() {
            tokio::task::yield_now().await
        }
    };
    tokio::time::timeout(secs(5), done).await.unwrap();
    let settled = store.settled();
    assert!(
        matches!(&settled[..], [("charge", costs)] if costs[0] >= 3),
        "{settled:?}"
    );
}

#[tokio::test]
async fn task_after_response_settles_last() {
    let store = ScriptedStore::new();
    let go_on = Arc::new(Notify::new());
    let going = Arc::clone(&go_on);
    let handler = move |Extension(reservation): Extension<Reservation>| async move {
        let _ = reservation.settle("limit", 1);
        tokio::spawn(async move {
            going.notified().await;
            let _ = reservation.settle("limit", 30);
        });
    };
    let app = app(
        &store,
        limit().settle(by_handler()),
        Router::new().route("/", get(handler)),
    )
    .await;
    assert!(ask(app, "GET", "/").await.starts_with("HTTP/1.1 200"));
    assert!(store.settled().is_empty());
    go_on.notify_one();
    store.until_settled(&[("charge", &[20])]).await;
}
