//! Refused requests are sent again, within a budget.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::any;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use tower::{Layer, Service, ServiceExt};
use tower_quota::throttle::{Retries, remote_headers, remote_refusals};
use tower_quota::{Limiter, MemoryStore, Quota, ThrottleLayer};

use crate::fixture::{Order, Printer, SECOND, TICK, limiter, now, pause, user};
use crate::sockets::serve;

type Outbound = Request<Full<Bytes>>;

type OrderRetries = Retries<Order, Order>;

/// Returns retries of orders, which the printer refuses if they push back.
fn orders() -> OrderRetries {
    Retries::new(|order: &Order| Some(*order), pause)
}

/// Returns the times of the printed orders since the first one.
fn times(printer: &Printer) -> Vec<Duration> {
    let printed = printer.printed();
    printed
        .iter()
        .map(|(_, at)| at.duration_since(printed[0].1))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn retry_waits_as_the_remote_asks() {
    let printer = Printer::default();
    let service = ThrottleLayer::global(limiter(Quota::per_second(100)))
        .pushback(pause)
        .retries(orders())
        .layer(printer.clone());
    let refused = service
        .oneshot(Order::of("ann").pushes_back(SECOND * 7))
        .await
        .unwrap();
    assert_eq!(
        refused.pause,
        Some(SECOND * 7),
        "the third refusal is the answer"
    );
    let seconds: Vec<_> = times(&printer).iter().map(Duration::as_secs).collect();
    assert_eq!(seconds, [0, 7, 14]);
}

#[tokio::test(start_paused = true)]
async fn retry_without_time_backs_off() {
    let printer = Printer::default();
    let service = ThrottleLayer::global(limiter(Quota::per_second(100)))
        .max_wait(SECOND * 200)
        .retries(
            orders()
                .max_attempts(9)
                .backoff(SECOND, SECOND * 20)
                .budget(10, 100),
        )
        .layer(printer.clone());
    service
        .oneshot(Order::of("ann").pushes_back(Duration::ZERO))
        .await
        .unwrap();
    let times = times(&printer);
    assert_eq!(times.len(), 9);
    for (pair, most) in times.windows(2).zip([1, 2, 4, 8, 16, 20, 20, 20]) {
        assert!(pair[1] - pair[0] <= SECOND * most + TICK, "{times:?}");
    }
    assert!(times[8] > SECOND, "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn retry_beyond_longest_wait_returns_refusal() {
    let printer = Printer::default();
    let service = ThrottleLayer::global(limiter(Quota::per_second(100)))
        .max_wait(SECOND * 10)
        .retries(orders())
        .layer(printer.clone());
    let start = now();
    let refused = service
        .oneshot(Order::of("ann").pushes_back(SECOND * 7))
        .await
        .unwrap();
    assert_eq!(refused.pause, Some(SECOND * 7));
    assert_eq!((printer.calls(), start.elapsed().as_secs()), (2, 7));
}

#[tokio::test(start_paused = true)]
async fn retry_without_turn_returns_refusal() {
    let printer = Printer::default();
    let service = ThrottleLayer::new(limiter(Quota::per_hour(2)), user)
        .retries(orders())
        .layer(printer.clone());
    let refused = service
        .oneshot(Order::of("ann").pushes_back(SECOND))
        .await
        .unwrap();
    assert_eq!(refused.pause, Some(SECOND));
    assert_eq!(printer.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn full_waiting_room_retries_nothing() {
    let printer = Printer::default();
    let service = ThrottleLayer::global(limiter(Quota::per_second(100)))
        .max_waiting(0)
        .retries(orders())
        .layer(printer.clone());
    service
        .oneshot(Order::of("ann").pushes_back(SECOND))
        .await
        .unwrap();
    assert_eq!(printer.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn dropped_request_is_not_retried() {
    let printer = Printer::default();
    let mut service = ThrottleLayer::global(limiter(Quota::per_second(100)))
        .retries(orders())
        .layer(printer.clone());
    let call = service.call(Order::of("ann").pushes_back(SECOND * 7));
    timeout(SECOND * 6, call).await.unwrap_err();
    tokio::time::advance(SECOND * 60).await;
    tokio::task::yield_now().await;
    assert_eq!(printer.calls(), 1);
}

/// A server that refuses its first requests, and records the bodies of all.
async fn remote(refusals: usize, fields: &'static [(&'static str, &'static str)]) -> Remote {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&bodies);
    let answer = async move |body: Bytes| {
        let mut received = received.lock().unwrap();
        received.push(body);
        if received.len() > refusals {
            return "accepted".into_response();
        }
        let mut response = StatusCode::TOO_MANY_REQUESTS.into_response();
        for (name, value) in fields {
            response.headers_mut().insert(*name, value.parse().unwrap());
        }
        response
    };
    let url = serve(Router::new().route("/", any(answer))).await;
    Remote { url, bodies }
}

struct Remote {
    url: String,
    bodies: Arc<Mutex<Vec<Bytes>>>,
}

impl Remote {
    fn requests(&self) -> usize {
        self.bodies.lock().unwrap().len()
    }

    fn request(&self, method: Method) -> Outbound {
        let body = Full::from("the body");
        Request::builder()
            .method(method)
            .uri(&self.url)
            .body(body)
            .unwrap()
    }
}

/// Returns a limiter that is no limit here.
fn many() -> Limiter<MemoryStore> {
    Limiter::new(MemoryStore::new(), "remote", Quota::per_second(1_000_000))
}

#[tokio::test]
async fn refused_request_is_sent_until_accepted() {
    let remote = remote(2, &[]).await;
    let retries = Retries::http().backoff(Duration::ZERO, Duration::ZERO);
    let client = ThrottleLayer::global(many())
        .retries(retries)
        .layer(Client::builder(TokioExecutor::new()).build_http());
    let response = client.oneshot(remote.request(Method::PUT)).await.unwrap();
    assert_eq!(Response::status(&response), StatusCode::OK);
    assert_eq!(*remote.bodies.lock().unwrap(), ["the body"; 3]);
}

#[tokio::test]
async fn refusal_that_forbids_retries_is_returned() {
    let remote = remote(9, &[("grpc-retry-pushback-ms", "-1")]).await;
    let client = ThrottleLayer::global(many())
        .retries(Retries::http())
        .layer(Client::builder(TokioExecutor::new()).build_http());
    let response = client.oneshot(remote.request(Method::GET)).await.unwrap();
    assert_eq!(Response::status(&response), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(remote.requests(), 1);
}

#[tokio::test]
async fn post_is_retried_by_choice_only() {
    let remote = remote(1, &[]).await;
    let client = || Client::builder(TokioExecutor::new()).build_http();
    let service = ThrottleLayer::global(many())
        .retries(Retries::http())
        .layer(client());
    let response = service.oneshot(remote.request(Method::POST)).await.unwrap();
    assert_eq!(Response::status(&response), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(remote.requests(), 1);

    let remote = self::remote(1, &[]).await;
    let any_method = |request: &Outbound| Some(request.clone());
    let service = ThrottleLayer::global(many())
        .retries(Retries::new(any_method, remote_refusals))
        .layer(client());
    let response = service.oneshot(remote.request(Method::POST)).await.unwrap();
    assert_eq!(Response::status(&response), StatusCode::OK);
    assert_eq!(remote.requests(), 2);
}

#[tokio::test]
async fn budget_bounds_retries_of_all_requests() {
    let remote = remote(usize::MAX, &[]).await;
    let retries = Retries::http()
        .backoff(Duration::ZERO, Duration::ZERO)
        .budget(10, 0);
    let service = ThrottleLayer::global(many())
        .retries(retries)
        .layer(Client::builder(TokioExecutor::new()).build_http());
    for _ in 0..1_000 {
        let response = service
            .clone()
            .oneshot(remote.request(Method::GET))
            .await
            .unwrap();
        assert_eq!(Response::status(&response), StatusCode::TOO_MANY_REQUESTS);
    }
    assert_eq!(remote.requests(), 1_100);
}

/// A gRPC service that refuses its first call for as long as `RetryInfo` says.
#[derive(Clone, Default)]
struct Busy {
    calls: Arc<Mutex<usize>>,
}

impl tonic::server::NamedService for Busy {
    const NAME: &'static str = "test.Busy";
}

impl Service<Request<tonic::body::Body>> for Busy {
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<tonic::body::Body>) -> Self::Future {
        let mut calls = self.calls.lock().unwrap();
        *calls += 1;
        let status = if *calls == 1 {
            let delay = Some(Duration::from_millis(70));
            Status::with_error_details(
                Code::Unavailable,
                "busy",
                ErrorDetails::with_retry_info(delay),
            )
        } else {
            Status::ok("done")
        };
        ready(Ok(status.into_http()))
    }
}

#[tokio::test]
async fn retry_info_of_tonic_server_is_obeyed() {
    let busy = Busy::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/test.Busy/Call", listener.local_addr().unwrap());
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let server = tonic::transport::Server::builder().add_service(busy.clone());
    tokio::spawn(server.serve_with_incoming(incoming));

    let retries = Retries::new(|call: &Outbound| Some(call.clone()), remote_refusals);
    let client = ThrottleLayer::global(many())
        .pushback(remote_headers)
        .retries(retries);
    let http2 = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let call = Request::post(url)
        .header("content-type", "application/grpc")
        .body(Full::from(vec![0; 5]))
        .unwrap();
    let start = now();
    let response = client.layer(http2).oneshot(call).await.unwrap();
    assert_eq!(response.headers()["grpc-status"], "0");
    assert_eq!(*busy.calls.lock().unwrap(), 2);
    assert!(start.elapsed() >= Duration::from_millis(70));
}
