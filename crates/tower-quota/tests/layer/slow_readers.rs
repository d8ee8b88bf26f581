//! Clients that stop reading keep the units of their responses, and bound the memory of the service.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use http::header::ETAG;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{Limit, MemoryStore, Quota, RateLimitLayer, ResponseBody, settle};

use crate::axum_apps::served;
use crate::holds::{left, until_free};
use crate::settling_by_rule::Frames;
use crate::shared::{policy_of, stopped_store};

/// More than the buffers of a connection hold.
const BODY_BYTES: usize = 20_000_000;

const STREAMS: Quota = Quota::concurrent(2);

fn layer(store: &MemoryStore) -> RateLimitLayer<MemoryStore> {
    RateLimitLayer::new(store.clone(), policy_of(Limit::new("streams", STREAMS)))
}

/// A response that is counted until the server drops the bytes.
struct Document {
    bytes: Vec<u8>,
    in_memory: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Document {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Document {
    fn drop(&mut self) {
        self.in_memory.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves documents, and returns the number of documents in memory.
async fn documents(store: &MemoryStore) -> (SocketAddr, Arc<AtomicUsize>) {
    let in_memory = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&in_memory);
    let handler = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let document = Document {
            bytes: vec![b'a'; BODY_BYTES],
            in_memory: counted,
        };
        async { Body::from(Bytes::from_owner(document)) }
    };
    let app = Router::new().route("/", get(handler)).layer(layer(store));
    (served(app).await, in_memory)
}

/// Sends a request, and reads only the status of the response.
async fn read_status(app: SocketAddr) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(app).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    (stream, String::from_utf8_lossy(&head[9..]).into_owned())
}

#[tokio::test]
async fn slow_readers_of_large_body_hold_units() {
    let store = stopped_store();
    let (app, in_memory) = documents(&store).await;
    let mut streams = Vec::new();
    let mut statuses = Vec::new();
    for _ in 0..6 {
        let (stream, status) = read_status(app).await;
        streams.push(stream);
        statuses.push(status);
    }
    assert_eq!(statuses, ["200", "200", "429", "429", "429", "429"]);
    assert_eq!(in_memory.load(Ordering::Relaxed), 2);

    let mut rest = Vec::new();
    streams[0].read_to_end(&mut rest).await.unwrap();
    assert!(rest.len() > BODY_BYTES);
    until_free(&store, 1).await;
    assert_eq!(in_memory.load(Ordering::Relaxed), 1);
    drop(streams);
    until_free(&store, 2).await;
    assert_eq!(in_memory.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn slow_readers_over_http2_hold_units() {
    let store = stopped_store();
    let (app, in_memory) = documents(&store).await;
    let client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http::<Full<Bytes>>();
    let mut responses = Vec::new();
    for _ in 0..6 {
        let request = Request::get(format!("http://{app}/"));
        let request = request.body(Full::default()).unwrap();
        responses.push(client.request(request).await.unwrap());
    }
    let statuses: Vec<u16> = responses
        .iter()
        .map(|response| response.status().as_u16())
        .collect();
    assert_eq!(statuses, [200, 200, 429, 429, 429, 429]);
    assert_eq!(in_memory.load(Ordering::Relaxed), 2);
    drop(responses);
    until_free(&store, 2).await;
    assert_eq!(in_memory.load(Ordering::Relaxed), 0);
}

/// Returns the response body of a limited service that answers with these frames.
async fn response_of(store: &MemoryStore, frames: Frames) -> ResponseBody<Frames> {
    let inner = service_fn(move |_: Request<()>| {
        let frames = frames.clone();
        async { Ok::<_, Infallible>(Response::new(frames)) }
    });
    let response = layer(store).layer(inner).oneshot(Request::new(())).await;
    response.unwrap().into_body()
}

#[tokio::test]
async fn unwritten_data_holds_unit_after_trailers() {
    let store = stopped_store();
    let trailers = HeaderMap::from_iter([(ETAG, HeaderValue::from_static("1"))]);
    let frames = Frames {
        data: vec!["first", "last"],
        trailers: Some(trailers),
        breaks: false,
    };
    let mut body = response_of(&store, frames).await;
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    let last = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!((&first[..], &last[..]), (&b"first"[..], &b"last"[..]));
    assert!(body.frame().await.unwrap().unwrap().is_trailers());
    assert!(body.frame().await.is_none());
    drop(body);
    assert_eq!(left(&store, "streams", STREAMS).await, 1);
    drop(last);
    assert_eq!(left(&store, "streams", STREAMS).await, 1);
    drop(first);
    assert_eq!(left(&store, "streams", STREAMS).await, 2);
}

#[tokio::test(start_paused = true)]
async fn unwritten_data_of_waiting_request_holds_unit() {
    let store = stopped_store();
    let queue = Limit::new("queue", Quota::per_second(2).leaky_bucket().queue(9))
        .settle(settle::by_handler());
    let policy = policy_of(queue).limit(Limit::new("streams", STREAMS));
    let layer = RateLimitLayer::new(store.clone(), policy);
    let answer = Frames {
        data: vec!["data"],
        ..Frames::default()
    };
    let service = layer.layer(service_fn(move |_: Request<()>| {
        let frames = answer.clone();
        async { Ok::<_, Infallible>(Response::new(frames)) }
    }));
    drop(service.clone().oneshot(Request::new(())).await.unwrap());
    let waited = service.oneshot(Request::new(())).await.unwrap();
    let mut body = waited.into_body();
    let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
    drop(body);
    assert_eq!(left(&store, "streams", STREAMS).await, 1);
    drop(data);
    assert_eq!(left(&store, "streams", STREAMS).await, 2);
}

#[tokio::test]
async fn part_of_frame_holds_unit() {
    let store = stopped_store();
    let frames = Frames {
        data: vec!["begin and end"],
        ..Frames::default()
    };
    let mut body = response_of(&store, frames).await;
    let mut data = body.frame().await.unwrap().unwrap().into_data().unwrap();
    drop(body);
    drop(data.split_to(5));
    assert_eq!(left(&store, "streams", STREAMS).await, 1);
    drop(data);
    assert_eq!(left(&store, "streams", STREAMS).await, 2);
}

#[tokio::test]
async fn empty_and_failed_bodies_hold_nothing() {
    let store = stopped_store();
    let broken = Frames {
        breaks: true,
        ..Frames::default()
    };
    let empty_frame = Frames {
        data: vec![""],
        ..Frames::default()
    };
    for frames in [Frames::default(), broken, empty_frame] {
        let mut body = response_of(&store, frames).await;
        assert_eq!(left(&store, "streams", STREAMS).await, 1);
        let mut kept = Vec::new();
        while let Some(frame) = body.frame().await {
            kept.push(frame);
        }
        assert_eq!(left(&store, "streams", STREAMS).await, 2);
    }
}
