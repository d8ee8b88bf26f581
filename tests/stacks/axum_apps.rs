//! Axum apps: ordinary stacks, middleware from functions, nested routers, fallbacks, methods.

use std::time::Duration;

use axum::Router;
use axum::error_handling::HandleErrorLayer;
use axum::extract::Request as AxumRequest;
use axum::middleware::{Next, from_fn};
use axum::response::Response as AxumResponse;
use axum::routing::get;
use http::{HeaderValue, Request, StatusCode};
use tower::buffer::BufferLayer;
use tower::limit::ConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::timeout::TimeoutLayer as TowerTimeoutLayer;
use tower::{BoxError, Layer, ServiceBuilder};
use tower_http::compression::CompressionLayer;
use tower_http::cors::CorsLayer;
use tower_http::normalize_path::NormalizePathLayer;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key, when};
use tower_quota_rules::{Format, Rules};

use crate::each_layer::LONG;
use crate::handler::Handler;
use crate::limited::{limited, limited_by, three_per_minute};
use crate::outer_layers::{cross_origin, preflight};
use crate::server::{
    Server, assert_admitted, assert_fields, assert_refused, assert_refused_head, decoded, field,
};

/// Adds what most services have.
macro_rules! ordinary {
    ($builder:expr) => {
        $builder
            .layer(tower_http::trace::TraceLayer::new_for_http())
            .layer(tower_http::cors::CorsLayer::permissive())
            .layer(tower_http::timeout::TimeoutLayer::with_status_code(
                http::StatusCode::REQUEST_TIMEOUT,
                crate::each_layer::LONG,
            ))
            .layer(tower_http::compression::CompressionLayer::new())
    };
}
pub(crate) use ordinary;

fn handler() -> Router {
    Router::new().fallback_service(Handler::default())
}

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

#[tokio::test]
async fn ordinary_stack_outside_reaches_refusal() {
    for is_slow in [false, true] {
        let stack = ordinary!(ServiceBuilder::new()).layer(limited_by(three_per_minute(), is_slow));
        let server = Server::of_app(handler().layer(stack)).await;
        assert_eq!(server.send(preflight()).await.status(), 200);
        assert_admitted(&server.get("/").await, "2");
        let refused = server.refused(cross_origin).await;
        assert_eq!(field(&refused, "access-control-allow-origin"), Some("*"));
        assert_refused(&decoded(refused).await);
    }
}

#[tokio::test]
async fn ordinary_stack_inside_reaches_only_admitted() {
    for is_slow in [false, true] {
        let stack = ordinary!(ServiceBuilder::new().layer(limited_by(three_per_minute(), is_slow)));
        let server = Server::of_app(handler().layer(stack)).await;
        let admitted = server
            .send(Request::get("/long").header("accept-encoding", "gzip"))
            .await;
        assert_admitted(&admitted, "2");
        assert_eq!(field(&admitted, "access-control-allow-origin"), Some("*"));
        assert_eq!(decoded(admitted).await.body(), &[b'x'; 1_000][..]);
        let refused = server.refused(cross_origin).await;
        assert_refused(&refused);
        assert_eq!(field(&refused, "access-control-allow-origin"), None);
    }
}

#[tokio::test]
async fn separate_layers_equal_one_stack() {
    // `Router::layer` puts each around those before it.
    let timeout =
        TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, Duration::from_secs(60));
    let app = handler()
        .layer(limited())
        .layer(CompressionLayer::new())
        .layer(timeout)
        .layer(CorsLayer::permissive())
        .layer(TraceLayer::new_for_http());
    let refused = Server::of_app(app).await.refused(cross_origin).await;
    assert_eq!(field(&refused, "access-control-allow-origin"), Some("*"));
    assert_refused(&decoded(refused).await);
}

async fn mark(request: AxumRequest, next: Next) -> AxumResponse {
    let mut response = next.run(request).await;
    response
        .headers_mut()
        .insert("x-set", HeaderValue::from_static("set"));
    response
}

#[tokio::test]
async fn outer_function_sees_refusal() {
    let server = Server::of_app(hello().layer(limited()).layer(from_fn(mark))).await;
    assert_eq!(field(&server.get("/").await, "x-set"), Some("set"));
    let refused = server.refused(|| Request::get("/")).await;
    assert_refused(&refused);
    assert_eq!(field(&refused, "x-set"), Some("set"));
}

#[tokio::test]
async fn inner_function_sees_only_admitted() {
    let server = Server::of_app(hello().layer(from_fn(mark)).layer(limited())).await;
    let admitted = server.get("/").await;
    assert_admitted(&admitted, "2");
    assert_eq!(field(&admitted, "x-set"), Some("set"));
    let refused = server.refused(|| Request::get("/")).await;
    assert_refused(&refused);
    assert_eq!(field(&refused, "x-set"), None);
}

#[tokio::test]
async fn nested_router_is_limited_within_limited_router() {
    let wide = Limit::new("wide", Quota::per_minute(10));
    let app = hello()
        .nest("/api", hello().layer(limited()))
        .layer(limited_by(wide, true));
    let server = Server::of_app(app).await;
    assert_admitted(&server.get("/api").await, "2");
    server.get("/api").await;
    server.get("/api").await;
    assert_refused(&server.get("/api").await);
    let other = server.get("/").await;
    assert_eq!(other.status(), 200);
    assert_eq!(field(&other, "x-ratelimit-remaining"), Some("5"));
}

#[tokio::test]
async fn layer_counts_fallback_and_wrong_method() {
    let server = Server::of_app(hello().layer(limited())).await;
    let missing = server.get("/missing").await;
    assert_eq!(missing.status(), 404);
    assert_fields(&missing, "2");
    let wrong = server.send(Request::options("/")).await;
    assert_eq!(wrong.status(), 405);
    assert_eq!(field(&wrong, "allow"), Some("GET,HEAD"));
    assert_fields(&wrong, "1");
    assert_admitted(&server.get("/").await, "0");
    assert_refused(&server.send(Request::options("/missing")).await);
}

#[tokio::test]
async fn route_layer_leaves_fallback_unlimited() {
    let app = hello()
        .route_layer(limited())
        .fallback(|| async { (StatusCode::NOT_FOUND, "no such page") });
    let server = Server::of_app(app).await;
    assert_eq!(server.statuses("/missing").await, [404; 4]);
    assert_eq!(server.statuses("/").await, [200, 200, 200, 429]);
    assert_eq!(server.get("/missing").await.body(), "no such page");
}

#[tokio::test]
async fn method_router_and_service_are_limited_alone() {
    let app = Router::new()
        .route("/method", get(|| async { "hello" }).layer(limited()))
        .route_service("/service", limited().layer(Handler::default()))
        .nest_service("/nested", limited().layer(Handler::default()));
    let server = Server::of_app(app).await;
    for path in ["/method", "/service", "/nested"] {
        assert_eq!(server.statuses(path).await, [200, 200, 200, 429], "{path}");
    }
}

#[tokio::test]
async fn head_response_has_no_body() {
    let server =
        Server::of_app(hello().layer(ordinary!(ServiceBuilder::new()).layer(limited()))).await;
    let admitted = server.head("/").await;
    assert_admitted(&admitted, "2");
    assert_eq!(admitted.body(), "");
    server.get("/").await;
    server.get("/").await;
    let refused = server.head("/").await;
    assert_refused_head(&refused);
    assert_eq!(refused.body(), "");
}

async fn unavailable(error: BoxError) -> (StatusCode, String) {
    (StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

#[tokio::test]
async fn fallible_layers_work_outside_and_inside() {
    // What fails must be within a handler of errors; the limit passes errors on, and may be anywhere.
    let failing = || {
        (
            BufferLayer::new(8),
            LoadShedLayer::new(),
            ConcurrencyLimitLayer::new(8),
            TowerTimeoutLayer::new(LONG),
        )
    };
    let builder = ServiceBuilder::new;
    let handled = || HandleErrorLayer::new(unavailable);
    let apps = [
        hello().layer(builder().layer(handled()).layer(failing()).layer(limited())),
        hello().layer(builder().layer(handled()).layer(limited()).layer(failing())),
        hello().layer(builder().layer(limited()).layer(handled()).layer(failing())),
    ];
    for app in apps {
        let server = Server::of_app(app).await;
        assert_admitted(&server.get("/").await, "2");
        assert_refused(&server.refused(|| Request::get("/")).await);
    }
}

#[tokio::test]
async fn inner_error_passes_through() {
    let late = TowerTimeoutLayer::new(Duration::from_millis(20));
    let stack = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(unavailable))
        .layer(limited())
        .layer(late);
    let failed = Server::of_app(handler().layer(stack))
        .await
        .get("/never")
        .await;
    assert_eq!(failed.status(), 503);
    assert_eq!(failed.body(), "request timed out");
}

/// A path that is rewritten to an exempted path was not exempted when the client sent it.
#[tokio::test]
async fn rewritten_path_gains_no_exemption() {
    let document = "limits: [{ name: all, quota: 3 per 300 days fixed_window, key: none }]\nskip: [{ path: /healthz }]";
    let rules = Rules::parse(document, Format::Yaml).unwrap();
    let policy = Policy::new().limit(three_per_minute());
    for policy in [policy.skip(when::path("/healthz")), rules.policy()] {
        let inner = Router::new()
            .route("/healthz", get(|| async { "well" }))
            .layer(RateLimitLayer::new(MemoryStore::new(), policy));
        let app =
            Router::new().fallback_service(NormalizePathLayer::trim_trailing_slash().layer(inner));
        let server = Server::of_app(app).await;
        for _ in 0..3 {
            assert_eq!(server.get("/healthz/").await.status(), 200);
        }
        assert_eq!(server.get("/healthz/").await.status(), 429);
        assert_eq!(server.get("/healthz").await.status(), 200);
    }
}

/// A layer between two routers rewrites the path, so that `OriginalUri` and the present path differ.
#[tokio::test]
async fn rewritten_path_does_not_evade_limit() {
    let login = || limited_by(three_per_minute().when(when::path("/login")), false);
    let inner = || {
        Router::new()
            .route("/login", get(|| async { "hello" }))
            .layer(login())
    };
    let fallback =
        Router::new().fallback_service(NormalizePathLayer::trim_trailing_slash().layer(inner()));
    let nested = Router::new().nest_service(
        "/api",
        NormalizePathLayer::trim_trailing_slash().layer(inner()),
    );
    for (app, prefix) in [(fallback, ""), (nested, "/api")] {
        let server = Server::of_app(app).await;
        for path in ["/login/", "/login", "/login///"] {
            let answer = server.get(&format!("{prefix}{path}")).await;
            assert_eq!(answer.status(), 200, "{path}");
        }
        for path in ["/login/", "/login", "/login///"] {
            let answer = server.get(&format!("{prefix}{path}")).await;
            assert_eq!(answer.status(), 429, "{path}");
        }
    }
}

#[tokio::test]
async fn extra_slashes_share_the_path_counter() {
    for by in [key::path(), key::path_segment(0)] {
        let inner = Router::new()
            .route("/login", get(|| async { "hello" }))
            .layer(limited_by(three_per_minute().by(by), false));
        let normalized = NormalizePathLayer::trim_trailing_slash().layer(inner);
        let server = Server::of_app(Router::new().fallback_service(normalized)).await;
        for (path, expected) in [
            ("/login", 200),
            ("//login", 200),
            ("///login/", 200),
            ("////login", 429),
            ("/////login", 429),
            ("/login", 429),
        ] {
            assert_eq!(server.get(path).await.status(), expected, "{path}");
        }
    }
}
