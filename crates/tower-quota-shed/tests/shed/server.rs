//! A real server, whose clients go away at random moments.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tower_quota::{key, when};
use tower_quota_shed::{Priority, ShedHandle, ShedLayer};

use crate::service::feed;

/// Sends a frame each millisecond, for ever.
async fn stream() -> Body {
    let (frames, content) = feed();
    tokio::spawn(async move {
        while frames
            .send(Ok(http_body::Frame::data(Bytes::from("tick"))))
            .is_ok()
        {
            pause(1).await;
        }
    });
    Body::new(content)
}

/// Sends 16 MB, which no kernel buffers.
async fn download() -> Body {
    let (frames, content) = feed();
    for _ in 0..256 {
        let part = Bytes::from(vec![0; 1 << 16]);
        let _ = frames.send(Ok(http_body::Frame::data(part)));
    }
    Body::new(content)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a real server and its clients need real time"
)]
async fn pause(millis: u64) {
    sleep(Duration::from_millis(millis)).await;
}

async fn serve(layer: ShedLayer) -> SocketAddr {
    let app = Router::new()
        .route("/fast", get(async || "hello"))
        .route("/slow", get(async || pause(5).await))
        .route("/hang", get(std::future::pending::<()>))
        .route("/stream", get(stream))
        .route("/download", get(download))
        .route("/panic", get(async || -> () { panic!("as asked") }))
        .layer(layer);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// A request and the moment at which its client goes.
#[derive(Clone, Debug)]
struct Visit {
    path: &'static str,
    version: Version,
    millis: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Version {
    Http1,
    Http2,
    /// Over a connection that the client closes, perhaps in the middle of the request.
    Raw,
}

fn visits() -> impl Strategy<Value = Vec<Visit>> {
    let path = prop::sample::select(vec!["/fast", "/slow", "/hang", "/stream", "/panic"]);
    let version = prop::sample::select(vec![Version::Http1, Version::Http2, Version::Raw]);
    let visit = (path, version, 0_u64..12);
    let visit = visit.prop_map(|(path, version, millis)| Visit {
        path,
        version,
        millis,
    });
    prop::collection::vec(visit, 1..40)
}

impl Visit {
    async fn go(self, address: SocketAddr) {
        let begun = async {
            if self.version == Version::Raw {
                let mut connection = TcpStream::connect(address).await.unwrap();
                let head = format!("GET {} HTTP/1.1\r\nhost: a\r\n\r\n", self.path);
                // A third of the heads is incomplete.
                let length = head.len() - usize::from(self.millis.is_multiple_of(3));
                let _ = connection.write_all(&head.as_bytes()[..length]).await;
                pause(self.millis).await;
                return;
            }
            let mut client = Client::builder(TokioExecutor::new());
            client.http2_only(self.version == Version::Http2);
            let client = client.build_http::<Empty<Bytes>>();
            let request = Request::get(format!("http://{address}{}", self.path))
                .header("x-tenant", self.path)
                .body(Empty::new());
            if let Ok(response) = client.request(request.unwrap()).await {
                let _ = response.into_body().collect().await;
            }
        };
        let _ = timeout(Duration::from_millis(self.millis), begun).await;
    }
}

/// Waits until the server has noticed that all clients have gone.
async fn assert_empties(handle: &ShedHandle) {
    let empty = async {
        while handle.stats().in_progress > 0 || handle.stats().waiting > 0 {
            pause(1).await;
        }
    };
    let is_empty = timeout(Duration::from_secs(60), empty).await;
    assert!(is_empty.is_ok(), "leaked: {:?}", handle.stats());
}

fn layer() -> ShedLayer {
    crate::service::fixed(6)
        .priority(Priority::Low.when(when::path("/slow")))
        .fair_by(key::header("x-tenant"))
        .queue(4, Duration::from_millis(3))
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn clients_that_go_away_leak_no_place(visits in visits()) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let layer = layer();
            let address = serve(layer.clone()).await;
            let visits = visits.into_iter().map(|visit| tokio::spawn(visit.go(address)));
            for visit in visits.collect::<Vec<_>>() {
                visit.await.unwrap();
            }
            assert_empties(&layer.handle()).await;
        });
    }
}

#[tokio::test]
async fn real_client_gets_the_refusal() {
    let layer = crate::service::fixed(1);
    let address = serve(layer.clone()).await;
    let client = reqwest::Client::new();
    let stream = client
        .get(format!("http://{address}/stream"))
        .send()
        .await
        .unwrap();
    assert_eq!(layer.handle().stats().in_progress, 1);
    let refused = client
        .get(format!("http://{address}/fast"))
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    drop(stream);
    assert_empties(&layer.handle()).await;
    let answer = client
        .get(format!("http://{address}/fast"))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
}

/// Reads the head of a response of 200, again and again, and nothing else.
async fn read_head(address: SocketAddr) -> TcpStream {
    loop {
        let mut connection = TcpStream::connect(address).await.unwrap();
        let request = b"GET /download HTTP/1.1\r\nhost: a\r\n\r\n";
        connection.write_all(request).await.unwrap();
        let mut status = [0; 12];
        connection.read_exact(&mut status).await.unwrap();
        if status == *b"HTTP/1.1 200" {
            return connection;
        }
        pause(10).await;
    }
}

#[tokio::test]
async fn slow_readers_take_no_place_from_others() {
    let layer = ShedLayer::new();
    let address = serve(layer.clone()).await;
    let readers = (0..60).map(|_| tokio::spawn(read_head(address)));
    let mut connections = Vec::new();
    for reader in readers.collect::<Vec<_>>() {
        let reader = timeout(Duration::from_secs(20), reader).await;
        let is_answered = reader.is_ok();
        assert!(is_answered, "{:?}", layer.handle().stats());
        connections.push(reader.unwrap().unwrap());
    }
    let client = reqwest::Client::new();
    let ask = async || {
        let answer = client.get(format!("http://{address}/fast")).send().await;
        answer.unwrap().status()
    };
    // Until the last bodies are long.
    while ask().await == 503 {
        pause(10).await;
    }
    for _ in 0..100 {
        assert_eq!(ask().await, 200);
    }
    assert_eq!(layer.handle().stats().in_progress, 60);
    drop(connections);
    assert_empties(&layer.handle()).await;
}
