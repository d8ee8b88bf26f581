//! Apps on real sockets, a client, and assertions about reported mistakes.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::get;
use axum::{Router, ServiceExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::util::MapResponse;
use tower_quota::{
    Check, Limit, MemoryStore, Policy, Quota, RateLimit, RateLimitLayer, ResponseBody, Store, key,
};
use tower_quota_dev::record_log;
use tracing::Level;

use crate::log::Log;
use crate::page::PAGE;

/// Returns a limit that is never reached.
pub(crate) fn minute() -> Limit {
    Limit::new("minute", Quota::per_minute(1_000_000))
}

pub(crate) fn by_client() -> Policy {
    Policy::new().limit(minute().by(key::client_ip()))
}

pub(crate) fn in_memory(policy: Policy) -> RateLimitLayer<MemoryStore> {
    RateLimitLayer::new(MemoryStore::new(), policy)
}

/// Returns an app that answers every path.
pub(crate) fn app() -> Router {
    Router::new()
        .route("/", get(|| async {}))
        .route("/{*path}", get(|| async {}))
}

/// A connection to an app.
pub(crate) struct Client {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Client {
    /// Serves the app with the address of each peer.
    pub(crate) async fn of(app: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            axum::serve(
                listener,
                app.into_make_service_with_connect_info::<SocketAddr>(),
            )
            .await
            .unwrap();
        });
        Self::to(address).await
    }

    /// Serves the app without the address of its peers.
    pub(crate) async fn of_app_without_peers(app: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self::to(address).await
    }

    /// Serves a service around an app.
    pub(crate) async fn of_service<S: Store>(service: RateLimit<Router, S>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = MapResponse::new(service, |response: Response<ResponseBody<Body>>| {
            response.map(Body::new)
        });
        let service = ServiceExt::<Request>::into_make_service(service);
        tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
        Self::to(address).await
    }

    async fn to(address: SocketAddr) -> Self {
        Self {
            stream: TcpStream::connect(address).await.unwrap(),
            answer: Vec::new(),
        }
    }

    /// Sends a request with these header lines. Returns the status of the response.
    pub(crate) async fn get(&mut self, path: &str, lines: &str) -> u16 {
        let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\n{lines}\r\n");
        self.stream.write_all(request.as_bytes()).await.unwrap();
        loop {
            if let Some((status, length)) = complete(&self.answer) {
                self.answer.drain(..length);
                return status;
            }
            assert_ne!(
                self.stream.read_buf(&mut self.answer).await.unwrap(),
                0,
                "the server has closed the connection"
            );
        }
    }

    /// Sends this many requests, each to another path.
    pub(crate) async fn get_paths(&mut self, requests: usize, lines: &str) {
        for number in 0..requests {
            self.get(&format!("/{number}"), lines).await;
        }
    }
}

/// Returns the status and the length of a complete response.
fn complete(answer: &[u8]) -> Option<(u16, usize)> {
    let text = String::from_utf8_lossy(answer);
    let head = text.find("\r\n\r\n")? + 4;
    let length = text[..head]
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length = head + length.map_or(0, |length| length.parse::<usize>().unwrap());
    (answer.len() >= length).then(|| (text[9..12].parse().unwrap(), length))
}

/// Runs a server and its client with the check, then without it.
///
/// With the check, one warning must be logged, the one in the page, and this number of requests counted.
pub(crate) async fn proves<S: Store>(
    check: Check,
    requests: u64,
    layer: impl Fn() -> RateLimitLayer<S>,
    run: impl AsyncFn(RateLimitLayer<S>),
) {
    let log = Log::default();
    let _guard = record_log(log.clone());
    let loud = layer();
    let handle = loud.handle();
    run(loud).await;
    let lines = log.lines();
    let [(Level::WARN, text)] = lines.as_slice() else {
        panic!("not one warning of {check:?}: {lines:?}")
    };
    let mistakes = handle.mistakes();
    assert_eq!(mistakes.counts().collect::<Vec<_>>(), [(check, requests)]);
    assert_eq!(
        mistakes.warnings().collect::<Vec<_>>(),
        [(check, text.as_str())]
    );
    assert!(!text.contains("127.0.0"), "an address: {text}");
    let end = format!(
        " This is logged once; `RateLimitLayer::without_check(Check::{check:?})` turns it off."
    );
    let shown = text.strip_suffix(&end).unwrap_or_else(|| panic!("{text}"));
    assert!(
        PAGE.contains(&format!("| `Check::{check:?}` | {shown} |")),
        "docs/reference/mistakes.md needs:\n| `Check::{check:?}` | {shown} |"
    );

    let quiet = layer().without_check(check);
    let handle = quiet.handle();
    run(quiet).await;
    assert_eq!(log.lines().len(), 1, "it is turned off");
    assert!(handle.mistakes().is_empty());
}

/// Runs a server and its clients, which must log nothing.
pub(crate) async fn is_silent<S: Store>(
    layer: RateLimitLayer<S>,
    run: impl AsyncFn(RateLimitLayer<S>),
) {
    let log = Log::default();
    let _guard = record_log(log.clone());
    let handle = layer.handle();
    run(layer).await;
    assert_eq!(log.lines(), []);
    assert!(handle.mistakes().is_empty(), "{}", handle.mistakes());
}
