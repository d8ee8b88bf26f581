//! Axum apps, called over real sockets.

use std::net::SocketAddr;

use axum::routing::get;
use axum::{Extension, Router};
use http::{Extensions, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceBuilder;
use tower_quota::{Decision, Limit, MemoryStore, RateLimitLayer};

use crate::fixture::failing_store;
use crate::shared::{answer_to, per_minute, policy_of, stopped_layer};

/// Serves an app on a free port.
pub(crate) async fn served(app: Router) -> SocketAddr {
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
    address
}

/// Returns the complete response, head and body.
pub(crate) async fn ask(address: SocketAddr, method: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

pub(crate) async fn status(address: SocketAddr, path: &str) -> u16 {
    ask(address, "GET", path)
        .await
        .split(' ')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

pub(crate) fn layer(limit: Limit) -> RateLimitLayer<MemoryStore> {
    stopped_layer(policy_of(limit))
}

pub(crate) fn twice() -> Limit {
    per_minute("twice", 2)
}

pub(crate) fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

#[tokio::test]
async fn socket_client_gets_headers_and_problem() {
    let app = served(hello().layer(layer(twice()))).await;
    let admitted = ask(app, "GET", "/").await;
    assert!(admitted.starts_with("HTTP/1.1 200 OK\r\n"), "{admitted}");
    assert!(
        admitted.contains("\r\nratelimit: \"twice\";r=1;t=30\r\n"),
        "{admitted}"
    );
    assert!(
        admitted.contains("\r\nratelimit-policy: \"twice\";q=2;w=60\r\n"),
        "{admitted}"
    );
    assert!(admitted.ends_with("\r\n\r\nhello"), "{admitted}");
    ask(app, "GET", "/").await;

    let refused = ask(app, "GET", "/").await;
    assert!(
        refused.starts_with("HTTP/1.1 429 Too Many Requests\r\n"),
        "{refused}"
    );
    assert!(refused.contains("\r\nretry-after: 30\r\n"), "{refused}");
    let (head, body) = refused.split_once("\r\n\r\n").unwrap();
    assert!(
        head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())),
        "{refused}"
    );
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(body).unwrap()["violated-policies"][0],
        "twice"
    );

    let only_head = ask(app, "HEAD", "/").await;
    assert!(
        only_head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())),
        "{only_head}"
    );
    assert!(only_head.ends_with("\r\n\r\n"), "{only_head}");
}

#[tokio::test]
async fn route_layer_skips_the_fallback() {
    let layered = served(hello().layer(layer(twice()))).await;
    assert_eq!(status(layered, "/missing").await, 404);
    assert_eq!(status(layered, "/missing").await, 404);
    assert_eq!(status(layered, "/missing").await, 429);
    assert_eq!(status(layered, "/").await, 429);

    let routes_only = served(hello().route_layer(layer(twice()))).await;
    for _ in 0..5 {
        assert_eq!(status(routes_only, "/missing").await, 404);
    }
    assert_eq!(status(routes_only, "/").await, 200);
    assert_eq!(status(routes_only, "/").await, 200);
    assert_eq!(status(routes_only, "/").await, 429);
}

#[tokio::test]
async fn wrong_method_is_counted_and_named() {
    let address = served(hello().layer(layer(twice()))).await;
    let wrong = ask(address, "OPTIONS", "/").await;
    assert!(wrong.starts_with("HTTP/1.1 405 "), "{wrong}");
    assert!(wrong.contains("\r\nallow: GET,HEAD\r\n"), "{wrong}");
    assert!(
        wrong.contains("\r\nx-ratelimit-remaining: 1\r\n"),
        "{wrong}"
    );
    assert_eq!(status(address, "/").await, 200);
    assert_eq!(status(address, "/").await, 429);
}

#[tokio::test]
async fn nested_layer_leaves_outer_fallback_uncounted() {
    let nested = Router::new()
        .route("/", get(|| async { "hello" }))
        .layer(layer(twice()));
    let address = served(Router::new().nest("/api", nested)).await;
    for _ in 0..3 {
        assert_eq!(status(address, "/api/nothing").await, 404);
    }
    assert_eq!(status(address, "/api").await, 200);
    assert!(
        !ask(address, "GET", "/api/nothing")
            .await
            .contains("ratelimit")
    );
}

#[tokio::test]
async fn nested_and_method_routers_are_limited_separately() {
    let inner = hello().layer(layer(twice()));
    let handler = get(|| async { "one" }).layer(layer(per_minute("once", 1)));
    let app = served(hello().nest("/api", inner).route("/one", handler)).await;
    for _ in 0..2 {
        assert_eq!(status(app, "/api").await, 200);
    }
    assert_eq!(status(app, "/api").await, 429);
    assert_eq!(status(app, "/one").await, 200);
    assert_eq!(status(app, "/one").await, 429);
    for _ in 0..5 {
        assert_eq!(status(app, "/").await, 200);
    }
}

#[tokio::test]
async fn service_builder_around_app_is_limited() {
    let app = ServiceBuilder::new().layer(layer(twice())).service(hello());
    for expected in [200, 200, 429] {
        let request = Request::get("/").body(axum::body::Body::empty()).unwrap();
        assert_eq!(answer_to(&app, request).await.status(), expected);
    }
    let nested = served(Router::new().fallback_service(app)).await;
    assert_eq!(status(nested, "/").await, 429);
}

#[tokio::test]
async fn handlers_can_read_the_decision() {
    let app = served(app_with_remaining().layer(layer(twice()).attach_decision())).await;
    assert!(ask(app, "GET", "/").await.ends_with("\r\n\r\n1"));
    assert!(ask(app, "GET", "/").await.ends_with("\r\n\r\n0"));
}

/// Returns an app that answers with the remaining units; `/counted` requires a decision.
fn app_with_remaining() -> Router {
    let left = |parts: Extensions| async move {
        let decision = parts.get::<Decision>();
        decision.map_or("not counted".into(), |decision| {
            decision.statuses()[0].remaining().to_string()
        })
    };
    let counted = |Extension(_): Extension<Decision>| async {};
    Router::new()
        .route("/", get(left))
        .route("/counted", get(counted))
}

#[tokio::test]
async fn handlers_must_not_insist_on_a_decision() {
    let failing = RateLimitLayer::new(failing_store(), policy_of(twice())).attach_decision();
    let not_applying = layer(twice().when(|_| false)).attach_decision();
    for app in [
        served(app_with_remaining().layer(failing)).await,
        served(app_with_remaining().layer(not_applying)).await,
    ] {
        let response = ask(app, "GET", "/").await;
        assert!(
            response.starts_with("HTTP/1.1 200") && response.ends_with("\r\n\r\nnot counted"),
            "{response}"
        );
        assert_eq!(status(app, "/counted").await, 500);
    }
}
