//! An app without mistakes.

use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use tower_quota::{Check, Limit, OnStoreFailure, Policy, Quota, key, when};

use crate::fixture::{Client, app, in_memory, is_silent, minute, proves};

#[tokio::test]
async fn correct_app_logs_nothing() {
    let login = Limit::new(
        "login",
        Quota::new(5, Duration::from_secs(900)).sliding_log(),
    )
    .by(key::client_ip())
    .when(when::path("/api/login"))
    .on_store_failure(OnStoreFailure::Refuse);
    let policy = Policy::new()
        .limit(minute().by(key::header("x-api-key").or(key::client_ip())))
        .limit(
            Limit::new("burst", Quota::per_second(20))
                .by(key::client_ip())
                .unless(when::path("/healthz")),
        )
        .limit(login)
        .limit(Limit::new("admin", Quota::per_second(10)).when(when::route("/api/admin")));
    is_silent(in_memory(policy), async |layer| {
        let api = Router::new()
            .route("/items/{id}", get(|| async {}))
            .route("/login", get(|| async {}))
            .route("/admin", post(|| async {}));
        let routes = Router::new()
            .route("/healthz", get(|| async {}))
            .nest("/api", api);
        let mut client = Client::of(routes.layer(layer)).await;
        for number in 0..2_000 {
            let path = match number % 10 {
                0 => String::from("/api/login"),
                1..5 => String::from("/healthz"),
                5 => String::from("/wp-admin"),
                _ => format!("/api/items/{number}"),
            };
            let key = if number % 3 == 0 {
                "x-api-key: ann\r\n"
            } else {
                ""
            };
            client.get(&path, key).await;
        }
    })
    .await;
}

#[tokio::test]
async fn later_requests_are_not_examined() {
    is_silent(
        in_memory(Policy::new().limit(minute().by(key::client_ip()))),
        async |layer| {
            let mut client = Client::of(app().layer(layer)).await;
            client.get_paths(1_000, "").await;
            client.get_paths(50, "x-forwarded-for: 192.0.2.1\r\n").await;
        },
    )
    .await;
}

#[tokio::test]
async fn partly_proved_mistakes_are_examined_longer() {
    // One of twenty requests meets the route that is written without its prefix.
    let rare = || in_memory(Policy::new().limit(minute().when(when::route("/items"))));
    // The limit meets no request, so the layer still examines requests after the proof.
    proves(Check::UnreachableLimit, 110, rare, async |layer| {
        let routes = Router::new()
            .route("/items", get(|| async {}))
            .route("/others", get(|| async {}));
        let mut client = Client::of(Router::new().nest("/api", routes.layer(layer))).await;
        for number in 0..2_200 {
            let path = if number % 20 == 0 {
                "/api/items"
            } else {
                "/api/others"
            };
            client.get(path, "").await;
        }
    })
    .await;
}
