//! Paths that a layer rewrites inside a nest meet the conditions with the prefix of the nest.

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::{Request, Uri};
use tower::util::MapRequestLayer;
use tower::{Layer, ServiceExt};
use tower_quota::{Policy, RateLimitLayer, RequestHead, when};

use crate::shared::{per_hour, stopped_store};

/// Removes the version and the final slashes of a path.
fn rewrite(mut request: Request<Body>) -> Request<Body> {
    let path = request.uri().path().replacen("/v1", "", 1);
    let path = format!("/{}", path.trim_matches('/'));
    *request.uri_mut() = path.parse::<Uri>().unwrap();
    request
}

/// Returns the statuses of requests to a limited router, nested behind the rewriting layer.
async fn statuses(nest: &str, policy: Policy, paths: &[&str]) -> Vec<u16> {
    let limited = Router::new()
        .route("/", get(|| async {}))
        .route("/login", get(|| async {}))
        .layer(RateLimitLayer::new(stopped_store(), policy));
    let rewritten = MapRequestLayer::new(rewrite).layer(limited);
    let app = match nest {
        "" => Router::new().fallback_service(rewritten),
        nest => Router::new().nest_service(nest, rewritten),
    };
    let mut statuses = Vec::new();
    for path in paths {
        let request = Request::get(*path).body(Body::empty()).unwrap();
        let response = app.clone().oneshot(request).await.unwrap();
        statuses.push(response.status().as_u16());
    }
    statuses
}

fn limit_at(pattern: &str) -> Policy {
    Policy::new().limit(per_hour("limit", 1).when(when::path(pattern)))
}

fn exempt(pattern: &str) -> Policy {
    Policy::new()
        .skip(when::path(pattern))
        .limit(per_hour("limit", 1))
}

#[tokio::test]
async fn rewrite_inside_nest_evades_no_limit() {
    let paths = [
        "/api/login/",
        "/api/login",
        "/api/login//",
        "/api//login/",
        "/api/v1/login",
        "/api/v1/login/",
    ];
    for pattern in ["/api/login", "/api/{*rest}"] {
        let statuses = statuses("/api", limit_at(pattern), &paths).await;
        assert_eq!(statuses, [200, 429, 429, 429, 429, 429], "{pattern}");
    }
}

#[tokio::test]
async fn rewrite_inside_nest_with_parameter_evades_no_limit() {
    let paths = ["/ann/api/login/", "/ann/api/v1/login", "/ann/api/login"];
    for pattern in ["/{tenant}/api/login", "/ann/api/login"] {
        let statuses = statuses("/{tenant}/api", limit_at(pattern), &paths).await;
        assert_eq!(statuses, [200, 429, 429], "{pattern}");
    }
    let other = limit_at("/bob/api/login");
    let statuses = statuses("/{tenant}/api", other, &paths).await;
    assert_eq!(statuses, [200, 200, 200]);
}

#[tokio::test]
async fn exemption_must_match_rewritten_path() {
    // The path is rewritten to `/api/login`, which is not exempt.
    let paths = ["/api/v1/login", "/api/v1/login"];
    let statuses_of = async |policy, paths| statuses("/api", policy, paths).await;
    assert_eq!(
        statuses_of(exempt("/api/v1/{*rest}"), &paths).await,
        [200, 429]
    );
    let paths = ["/api/login/", "/api/login", "/api/login"];
    assert_eq!(
        statuses_of(exempt("/api/login"), &paths).await,
        [200, 200, 200]
    );
    assert_eq!(
        statuses_of(exempt("/api"), &["/api", "/api"]).await,
        [200, 200]
    );
}

#[tokio::test]
async fn closure_reads_rewritten_path() {
    let at_login = |head: &RequestHead<'_>| head.path() == "/login";
    let policy = Policy::new().limit(per_hour("limit", 1).when(at_login));
    let paths = ["/v1/login", "/v1/login", "/login", "/login/"];
    assert_eq!(statuses("", policy, &paths).await, [200, 429, 429, 429]);
    let at_login = |head: &RequestHead<'_>| head.path() == "/api/login";
    let policy = Policy::new().limit(per_hour("limit", 1).when(at_login));
    let paths = ["/api/login", "/api/login"];
    assert_eq!(statuses("/api", policy, &paths).await, [200, 429]);
}
