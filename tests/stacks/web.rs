//! An axum app with the layers of tower-http.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::error_handling::HandleErrorLayer;
use axum::extract::Request;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::middleware::{Next, from_fn};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{BoxError, Router};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, stream};
use http::request::Builder;
use http::{HeaderValue, Method, StatusCode};
use http_body_util::BodyExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::{ClientRequestBuilder, Error, Message};
use tower::limit::ConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::{Any, CorsLayer};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::normalize_path::NormalizePathLayer;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;
use tower_quota::{Limit, MissingKey, Policy, Quota, key, settle, when};
use tower_quota_rules::Rules;

use crate::shared::{
    Limited, Place, Traced, assert_documented, field, in_each_place, limited, remaining, three,
    used, within,
};

/// A page that is long enough for compression.
const PAGE: &str = include_str!("web.rs");

/// The app, and what its layers and handlers share with the test.
#[derive(Clone)]
struct Web {
    app: Router,
    traced: Traced,
    last_event: Arc<Notify>,
}

impl Web {
    fn new(place: Place, limit: Limited) -> Self {
        let (traced, last_event) = (Traced::default(), Arc::<Notify>::default());
        let (trace, last) = (traced.clone(), Arc::clone(&last_event));
        let cors = CorsLayer::new()
            .allow_origin(Any)
            .allow_methods([Method::GET])
            .expose_headers(limit.exposed_headers());
        let mark = move |app: Router| {
            app.layer(from_fn(harden))
                .layer(CompressionLayer::new())
                .layer(cors)
                .layer(TraceLayer::new_for_http().on_response(trace))
                .layer(PropagateRequestIdLayer::x_request_id())
                .layer(SetRequestIdLayer::x_request_id(MakeRequestUuid))
        };
        let app = Router::new()
            .route("/", get(|| async { PAGE }))
            .route("/upload", post(|_: Bytes| async {}))
            .route("/panic", get(panic))
            .route("/never", get(pending::<()>))
            .route("/events", get(move || events(Arc::clone(&last))))
            .route(
                "/socket",
                any(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(echo) }),
            );
        let app = match place {
            Place::Outside => mark(guard(app)).layer(limit),
            Place::Between => mark(guard(app).layer(limit)),
            Place::Inside => mark(guard(app.layer(limit))),
        };
        Self {
            app,
            traced,
            last_event,
        }
    }

    async fn send(&self, request: Builder) -> Response {
        let request = request.body(Body::from("a long body")).unwrap();
        self.app.clone().oneshot(request).await.unwrap()
    }

    /// Uses the limit up, and returns the refusal of this request.
    async fn refused(&self, request: fn() -> Builder) -> Response {
        for expected in [2, 1, 0] {
            let response = self.send(request()).await;
            assert_eq!(response.status(), 200);
            assert_eq!(remaining(response.headers()), expected);
        }
        let refused = self.send(request()).await;
        assert_eq!(refused.status(), 429);
        assert_eq!(remaining(refused.headers()), 0);
        assert_eq!(field(refused.headers(), "retry-after"), Some("20"));
        refused
    }
}

/// Adds the layers that answer some requests instead of the handler.
fn guard(app: Router) -> Router {
    let shedding = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(shed))
        .layer(LoadShedLayer::new())
        .layer(ConcurrencyLimitLayer::new(8));
    let hour = Duration::from_secs(3_600);
    app.layer(shedding)
        .layer(from_fn(authenticate))
        .layer(RequestBodyLimitLayer::new(10))
        .layer(TimeoutLayer::with_status_code(
            StatusCode::REQUEST_TIMEOUT,
            hour,
        ))
        .layer(CatchPanicLayer::new())
}

/// Sets a header on every response.
async fn harden(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let value = HeaderValue::from_static("nosniff");
    response
        .headers_mut()
        .insert("x-content-type-options", value);
    response
}

/// Refuses requests without a token, and says which user the others have.
async fn authenticate(mut request: Request, next: Next) -> Response {
    let Some(token) = request.headers().get("authorization").cloned() else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    request.headers_mut().insert("x-user", token);
    next.run(request).await
}

async fn shed(error: BoxError) -> (StatusCode, String) {
    (StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

async fn panic() {
    std::panic::resume_unwind(Box::new("a panic without its message"))
}

/// Sends two events, the last one after `last` is notified.
async fn events(last: Arc<Notify>) -> impl IntoResponse {
    let event = |data| Ok::<_, Infallible>(Event::default().data(data));
    let second = stream::once(async move {
        last.notified().await;
        event("last")
    });
    Sse::new(stream::once(async move { event("first") }).chain(second))
}

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        socket.send(message).await.unwrap();
    }
}

fn request(path: &str) -> Builder {
    Request::get(path).header("authorization", "ann")
}

/// Returns a request of a page of another origin.
fn from_page() -> Builder {
    request("/")
        .header("origin", "https://page.test")
        .header("accept-encoding", "gzip")
}

fn preflight() -> Builder {
    Request::options("/")
        .header("origin", "https://page.test")
        .header("access-control-request-method", "GET")
}

#[tokio::test(start_paused = true)]
async fn failed_requests_count_as_documented() {
    let requests: [(_, fn() -> Builder, _); 5] = [
        ("a CORS preflight", preflight, 200),
        (
            "a request without its token, answered with 401",
            || Request::get("/"),
            401,
        ),
        (
            "a body whose `Content-Length` is too long, answered with 413",
            || {
                request("/upload")
                    .method("POST")
                    .header("content-length", 11)
            },
            413,
        ),
        (
            "a request that takes too long, answered with 408",
            || request("/never"),
            408,
        ),
        (
            "a handler that panics, answered with 500",
            || request("/panic"),
            500,
        ),
    ];
    for (title, request, status) in requests {
        let counted = in_each_place(three(), async |place, limit| {
            let response = Web::new(place, limit.clone()).send(request()).await;
            assert_eq!(response.status(), status);
            ["not counted", "counted"][used(&limit).await]
        });
        assert_documented(title, counted.await);
    }
    // An exception for preflights works where the limit would count them.
    let excepted = three().unless(when::cors_preflight());
    let counted = in_each_place(excepted, async |place, limit| {
        Web::new(place, limit.clone()).send(preflight()).await;
        used(&limit).await
    });
    assert_eq!(counted.await, [0; 3]);
}

#[tokio::test]
async fn refusals_are_marked_as_documented() {
    let marks = in_each_place(three(), async |place, limit| {
        let web = Web::new(place, limit);
        let refused = web.refused(from_page).await;
        let exposed = field(refused.headers(), "access-control-expose-headers");
        let marks = [
            refused.headers().contains_key("x-request-id"),
            web.traced.0.lock().unwrap().contains(&429),
            field(refused.headers(), "access-control-allow-origin") == Some("*"),
            exposed.is_some_and(|names| names.split(',').any(|name| name == "retry-after")),
            field(refused.headers(), "content-encoding") == Some("gzip"),
            refused.headers().contains_key("x-content-type-options"),
        ];
        marks.map(|is_marked| if is_marked { "yes" } else { "no" })
    });
    let [outside, between, inside] = marks.await;
    let titles = [
        "a refusal has the request id",
        "a refusal is traced",
        "a page of another origin can read a refusal",
        "the page can read its `Retry-After`",
        "a refusal is compressed",
        "a refusal has the headers of your middleware",
    ];
    for (i, title) in titles.into_iter().enumerate() {
        assert_documented(title, [outside[i], between[i], inside[i]]);
    }
}

#[tokio::test]
async fn refusal_is_readable_in_each_place() {
    in_each_place(three(), async |place, limit| {
        let refused = Web::new(place, limit).refused(|| request("/")).await;
        let body = to_bytes(refused.into_body(), usize::MAX).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem["violated-policies"][0], "three");
    })
    .await;
}

#[tokio::test]
async fn user_of_middleware_is_known_inside() {
    let by_user = three()
        .by(key::header("x-user"))
        .when_missing(MissingKey::Refuse);
    let statuses = in_each_place(by_user, async |place, limit| {
        Web::new(place, limit)
            .send(request("/"))
            .await
            .status()
            .as_u16()
    });
    assert_documented(
        "a limit by the user that your middleware attaches",
        statuses.await,
    );
}

#[tokio::test]
async fn compressed_bytes_count_as_documented() {
    let bytes = Limit::new("bytes", Quota::per_minute(1_000_000)).settle(settle::body_bytes(1));
    let counted = in_each_place(bytes, async |place, limit| {
        let web = Web::new(place, limit);
        let compressed = web.send(from_page()).await;
        let sent = to_bytes(compressed.into_body(), usize::MAX)
            .await
            .unwrap()
            .len();
        assert!(sent < PAGE.len());
        let next = web.send(from_page()).await;
        let left: usize = field(next.headers(), "x-ratelimit-remaining")
            .unwrap()
            .parse()
            .unwrap();
        // The next request is charged one unit until its body ends.
        match 999_999 - left {
            counted if counted == sent => "compressed",
            counted if counted == PAGE.len() => "uncompressed",
            _ => "something else",
        }
    });
    assert_documented("the bytes that `settle::body_bytes` counts", counted.await);
}

#[tokio::test]
async fn first_event_arrives_before_last() {
    in_each_place(three(), async |place, limit| {
        let web = Web::new(place, limit);
        let mut body = web
            .send(request("/events").header("accept-encoding", "gzip"))
            .await
            .into_body();
        let first = within(body.frame()).await.unwrap().unwrap();
        assert_eq!(first.into_data().unwrap(), "data: first\n\n");
        web.last_event.notify_one();
        assert_eq!(
            within(body.collect()).await.unwrap().to_bytes(),
            "data: last\n\n"
        );
    })
    .await;
}

#[tokio::test]
async fn websocket_is_one_request() {
    in_each_place(three(), async |place, limit| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(axum::serve(listener, Web::new(place, limit).app).into_future());
        let connect = async || {
            let uri = format!("ws://{address}/socket").parse().unwrap();
            let handshake = ClientRequestBuilder::new(uri).with_header("authorization", "ann");
            let stream = TcpStream::connect(address).await.unwrap();
            within(client_async(handshake, stream)).await
        };
        let (mut socket, response) = connect().await.unwrap();
        assert_eq!(response.status(), 101);
        assert_eq!(remaining(response.headers()), 2);
        let others = [connect().await.unwrap(), connect().await.unwrap()];
        let Err(Error::Http(refused)) = connect().await else {
            panic!("the limit must refuse the fourth handshake")
        };
        assert_eq!(refused.status(), 429);
        // Messages cost no units, and the open socket works after the refusal.
        for text in ["one", "two", "three", "four"] {
            within(socket.send(Message::text(text))).await.unwrap();
            assert_eq!(
                within(socket.next()).await.unwrap().unwrap(),
                Message::text(text)
            );
        }
        drop(others);
    })
    .await;
}

/// Changed paths do not evade a limit, and do not gain an exemption.
#[tokio::test]
async fn normalized_paths_meet_their_limit() {
    let rules = "limits: [{ name: all, quota: 3 per 300 days fixed_window, key: none }]\nskip: [{ path: /a }]";
    let rules = Rules::parse(rules).unwrap();
    let by = |key| Policy::new().limit(three().by(key));
    let at_path = Policy::new().limit(three().when(when::path("/a")));
    let at_full_path = Policy::new().limit(three().when(when::path("/api/a")));
    let except_path = Policy::new().limit(three()).skip(when::path("/a"));
    let spellings = ["/a/", "/a", "/a///", "/a/", "/a", "/a///"];
    let nested = [
        "/api/a/",
        "/api/a",
        "/api/a///",
        "/api/a/",
        "/api/a",
        "/api/a///",
    ];
    let repeated = ["/a", "//a", "///a/", "////a", "/////a", "/a"];
    let exempted = ["/a/", "/a/", "/a/", "/a/", "/a", "/a"];
    let refused_after_three = [200, 200, 200, 429, 429, 429];
    for (policy, paths, expected) in [
        (at_path.clone(), spellings, refused_after_three),
        (at_path, nested, refused_after_three),
        (at_full_path, nested, refused_after_three),
        (by(key::path()), repeated, refused_after_three),
        (by(key::path_segment(0)), repeated, refused_after_three),
        (except_path, exempted, [200, 200, 200, 429, 200, 200]),
        (rules.policy(), exempted, [200, 200, 200, 429, 200, 200]),
    ] {
        let inner = Router::new()
            .route("/a", get(|| async {}))
            .layer(limited(policy, false));
        let normalized = NormalizePathLayer::trim_trailing_slash().layer(inner);
        let app = Router::new()
            .nest_service("/api", normalized.clone())
            .fallback_service(normalized);
        for (path, status) in paths.into_iter().zip(expected) {
            let request = Request::get(path).body(Body::empty()).unwrap();
            assert_eq!(
                app.clone().oneshot(request).await.unwrap().status(),
                status,
                "{path}"
            );
        }
    }
}
