//! Units that requests hold until they are over, over real sockets.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_quota::settle::{Reservation, only_failures};
use tower_quota::{
    ConfigError, Key, Limit, MemoryStore, OnStoreFailure, Policy, Quota, RateLimitLayer, Store,
    store::{Charge, Operation},
};
use tower_quota_testkit::ManualClock;

use crate::axum_apps::{ask, served, status};
use crate::fixture::{ScriptedStore, failing_store, slow_store};
use crate::shared::{answer_to, per_hour, policy_of, secs, stopped_store};

const STREAMS: Quota = Quota::concurrent(2);
const HOUR: Quota = Quota::per_hour(100);

fn policy() -> Policy {
    policy_of(Limit::new("streams", STREAMS)).limit(Limit::new("hour", HOUR))
}

fn memory() -> MemoryStore {
    stopped_store()
}

/// Returns the units that are left of a limit.
pub(crate) async fn left<S: Store>(store: &S, limit: &'static str, quota: Quota) -> u64 {
    let everyone = Key::EVERYONE;
    let charge = Charge::new(limit, &quota, &everyone).cost(0);
    let decision = store.apply(Operation::Check, &[charge]).await.unwrap();
    decision.statuses()[0].remaining()
}

/// Waits until so many streams may begin.
pub(crate) async fn until_free<S: Store>(store: &S, streams: u64) {
    let reached = async {
        while left(store, "streams", STREAMS).await != streams {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(secs(5), reached).await;
    let left = left(store, "streams", STREAMS).await;
    assert!(waited.is_ok(), "{left} are free instead of {streams}");
}

/// Sends a request, and returns its connection after the first bytes of the response.
async fn open(app: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(app).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nhost: test\r\n\r\n";
    stream.write_all(request).await.unwrap();
    stream.read_exact(&mut [0; 12]).await.unwrap();
    stream
}

/// Senders of the data of the streams that are open.
type Senders = mpsc::UnboundedReceiver<mpsc::UnboundedSender<&'static str>>;

/// Serves streams, whose data the test sends.
async fn streams<S: Store + Clone>(store: &S) -> (SocketAddr, Senders) {
    let (opened, senders) = mpsc::unbounded_channel();
    let handler = move || {
        let (sender, data) = mpsc::unbounded_channel::<&'static str>();
        opened.send(sender).unwrap();
        async { Body::from_stream(UnboundedReceiverStream::new(data).map(Ok::<_, Infallible>)) }
    };
    let layer = RateLimitLayer::new(store.clone(), policy());
    let app = Router::new().route("/", get(handler)).layer(layer);
    (served(app).await, senders)
}

#[tokio::test]
async fn stream_holds_unit_until_body_ends() {
    let store = memory();
    let (app, mut senders) = streams(&store).await;
    let (_first, mut second) = (open(app).await, open(app).await);
    // The limit of the streams refuses, so the limit of the hour charges nothing.
    assert_eq!(status(app, "/").await, 429);
    assert_eq!(left(&store, "hour", HOUR).await, 98);

    let _open = senders.recv().await.unwrap();
    let sender = senders.recv().await.unwrap();
    sender.send("data").unwrap();
    assert_eq!(left(&store, "streams", STREAMS).await, 0);
    drop(sender);
    let mut rest = Vec::new();
    while !rest.ends_with(b"0\r\n\r\n") {
        second.read_buf(&mut rest).await.unwrap();
    }
    until_free(&store, 1).await;
    let _third = open(app).await;
    assert_eq!(status(app, "/").await, 429);
}

#[tokio::test]
async fn disconnected_client_releases_hold() {
    for store in [ScriptedStore::new(), slow_store()] {
        let (app, mut senders) = streams(&store).await;
        let stream = open(app).await;
        until_free(&store, 1).await;
        drop(stream);
        // The server notices it when it sends.
        let sender = senders.recv().await.unwrap();
        let sending = async {
            while sender.send("data").is_ok() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(secs(5), sending).await.unwrap();
        until_free(&store, 2).await;
    }
}

#[tokio::test]
async fn refused_and_failed_requests_hold_nothing() {
    let store = memory();
    let handler = |request: Request<Body>| async move {
        assert!(request.uri().path() != "/panic", "a panic");
        StatusCode::NO_CONTENT
    };
    let layer = RateLimitLayer::new(store.clone(), policy());
    let app = served(Router::new().fallback(handler).layer(layer)).await;
    for path in ["/panic", "/", "/panic", "/"] {
        let _ = ask(app, "GET", path).await;
        until_free(&store, 2).await;
    }
    let blocked = policy_of(Limit::new("streams", STREAMS)).limit(per_hour("none", 1).cost(1));
    let service = RateLimitLayer::new(store.clone(), blocked).layer(service_fn(|_| async {
        Ok::<_, Infallible>(Response::new(Body::empty()))
    }));
    for _ in 0..4 {
        let _ = service.clone().oneshot(Request::new(Body::empty())).await;
        until_free(&store, 2).await;
    }
}

#[tokio::test]
async fn dropped_request_releases_hold() {
    let store = memory();
    let never =
        service_fn(|_: Request<Body>| std::future::pending::<Result<Response, Infallible>>());
    let mut service = RateLimitLayer::new(store.clone(), policy()).layer(never);
    let request = service.call(Request::new(Body::empty()));
    until_free(&store, 1).await;
    drop(request);
    until_free(&store, 2).await;
}

#[tokio::test]
async fn clone_of_reservation_holds_upgraded_connection() {
    let store = memory();
    let end = Arc::new(Notify::new());
    let connection = |request: Request<Body>, end: Arc<Notify>, held: Option<Reservation>| {
        let upgrade = hyper::upgrade::on(request);
        tokio::spawn(async move {
            let _upgraded = upgrade.await.unwrap();
            end.notified().await;
            drop(held);
        });
        Response::builder()
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header("connection", "upgrade")
            .header("upgrade", "test")
            .body(Body::empty())
            .unwrap()
    };
    let ends = Arc::clone(&end);
    let handler = move |held: Reservation, request: Request<Body>| async move {
        let is_held = request.uri().path() == "/held";
        let mut request = request;
        request.extensions_mut().remove::<Reservation>();
        connection(request, ends, is_held.then_some(held))
    };
    let layer = RateLimitLayer::new(store.clone(), policy());
    let app = served(Router::new().fallback(handler).layer(layer)).await;
    let upgrade = async |path: &str| {
        let mut stream = TcpStream::connect(app).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: upgrade\r\nupgrade: test\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = vec![0; 12];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(head, b"HTTP/1.1 101");
        stream
    };
    let _released = upgrade("/released").await;
    until_free(&store, 2).await;
    let _held = upgrade("/held").await;
    until_free(&store, 1).await;
    end.notify_waiters();
    until_free(&store, 2).await;
}

#[tokio::test]
async fn handler_cannot_release_hold_early() {
    let store = memory();
    let (settled, probe) = (Arc::new(Notify::new()), store.clone());
    let handler = move |Extension(held): Extension<Reservation>| async move {
        held.refund();
        assert!(!held.settle("streams", 0));
        held.keep();
        assert_eq!(left(&probe, "streams", STREAMS).await, 1);
        settled.notify_one();
    };
    let layer = RateLimitLayer::new(store.clone(), policy());
    let app = served(Router::new().route("/", get(handler)).layer(layer)).await;
    assert_eq!(status(app, "/").await, 200);
    until_free(&store, 2).await;
}

#[tokio::test(start_paused = true)]
async fn hold_is_renewed_while_request_lasts() {
    let (clock, minute) = (ManualClock::default(), secs(60));
    let store = MemoryStore::with_clock(100, clock.clone());
    let never =
        service_fn(|_: Request<Body>| std::future::pending::<Result<Response, Infallible>>());
    let mut service = RateLimitLayer::new(store.clone(), policy()).layer(never);
    let request = service.call(Request::new(Body::empty()));
    tokio::task::yield_now().await;
    for _ in 0..30 {
        clock.advance(minute / 6);
        tokio::time::advance(minute / 6).await;
        // Renewals run in a task.
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        assert_eq!(left(&store, "streams", STREAMS).await, 1);
    }
    drop(request);
    assert_eq!(left(&store, "streams", STREAMS).await, 2);
}

#[tokio::test]
async fn local_hold_is_released() {
    let local = memory();
    let policy = policy().on_store_failure(OnStoreFailure::Local);
    let never =
        service_fn(|_: Request<Body>| std::future::pending::<Result<Response, Infallible>>());
    let layer = RateLimitLayer::new(failing_store(), policy).local_store(local.clone());
    let service = layer.layer(never);
    let mut request = Box::pin(service.oneshot(Request::new(Body::empty())));
    assert!(futures_poll(&mut request).is_pending());
    until_free(&local, 1).await;
    drop(request);
    until_free(&local, 2).await;
}

fn futures_poll<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}

#[tokio::test]
async fn dry_run_of_hold_is_released() {
    let store = memory();
    let policy = policy_of(Limit::new("streams", STREAMS).shadow());
    let service =
        RateLimitLayer::new(store.clone(), policy).layer(service_fn(|_: Request<Body>| async {
            Ok::<_, Infallible>(Response::new(Body::from(Bytes::from_static(b"data"))))
        }));
    for _ in 0..5 {
        let answer = answer_to(&service, Request::new(Body::empty())).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(left(&store, "streams", STREAMS).await, 1);
        answer.into_body().collect().await.unwrap();
        assert_eq!(left(&store, "streams", STREAMS).await, 2);
    }
}

#[test]
fn settle_rule_of_hold_is_an_error() {
    let limit = Limit::new("streams", STREAMS).settle(only_failures());
    let error = Policy::new().try_limit(limit).unwrap_err();
    assert!(matches!(error, ConfigError::SettledHold(limit) if limit.as_str() == "streams"));
}

#[tokio::test]
async fn refusal_of_hold_has_random_retry_time() {
    let (app, _senders) = streams(&memory()).await;
    let _open = [open(app).await, open(app).await];
    let mut times = BTreeSet::new();
    for _ in 0..60 {
        let refused = ask(app, "GET", "/").await;
        let time = refused.split_once("retry-after: ").unwrap().1;
        times.insert(time.split_once('\r').unwrap().0.to_owned());
    }
    assert!(times.iter().eq(["1", "2"]), "{times:?}");
}
