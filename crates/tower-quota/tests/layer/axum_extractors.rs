//! Extractors of axum's values, called over real sockets.

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use http::Request;
use tower::ServiceBuilder;
use tower_quota::{MissingKey, key};

use crate::axum_apps::{hello, layer, served, status, twice};
use crate::shared::answer_to;

#[tokio::test]
async fn clients_are_counted_by_their_peer_address() {
    let limit = twice()
        .by(key::client_ip())
        .when_missing(MissingKey::Refuse);
    let app = served(hello().layer(layer(limit))).await;
    assert_eq!(status(app, "/").await, 200);
    assert_eq!(status(app, "/").await, 200);
    assert_eq!(
        status(app, "/").await,
        429,
        "another connection from the same address"
    );
}

#[tokio::test]
async fn nested_routes_are_counted_by_pattern() {
    fn users() -> Router {
        Router::new().route(
            "/users/{id}",
            get(|Path(id): Path<u32>| async move { id.to_string() }),
        )
    }

    let limit = twice().by(key::route()).when_missing(MissingKey::Refuse);
    let app = served(users().nest("/v2", users()).layer(layer(limit.clone()))).await;
    assert_eq!(status(app, "/users/1").await, 200);
    assert_eq!(status(app, "/users/2").await, 200);
    assert_eq!(
        status(app, "/users/3").await,
        429,
        "one counter for the pattern"
    );
    assert_eq!(
        status(app, "/v2/users/1").await,
        200,
        "and another for the nested one"
    );
    assert_eq!(
        status(app, "/nowhere").await,
        400,
        "a fallback has no route"
    );

    // Around the app, no route is matched yet.
    let around = ServiceBuilder::new().layer(layer(limit)).service(users());
    let request = Request::get("/users/1")
        .body(axum::body::Body::empty())
        .unwrap();
    assert_eq!(answer_to(&around, request).await.status(), 400);
}
