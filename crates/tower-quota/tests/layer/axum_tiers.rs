//! A policy with lists, look-ups and tiers in front of an axum app, called over real sockets.

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use http::Extensions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower_quota::{MissingKey, Policy, Quota, key, when};

use crate::axum_apps::served;
use crate::shared::{per_minute, secs, stopped_layer};

#[derive(Clone)]
struct Account {
    name: &'static str,
    quota: Quota,
}

/// Looks up an account, in place of a database.
async fn account_of(api_key: String) -> Option<Account> {
    tokio::task::yield_now().await;
    match api_key.as_str() {
        "free-key" => Some(Account {
            name: "free",
            quota: Quota::per_minute(2),
        }),
        "pro-key" => Some(Account {
            name: "pro",
            quota: Quota::per_minute(6),
        }),
        _ => None,
    }
}

fn policy() -> Policy {
    Policy::new()
        .skip(when::any([when::path("/healthz"), when::cors_preflight()]))
        .block(when::key_in(key::header("x-api-key"), ["leaked-key"]))
        .look_up(secs(5), |head| {
            let api_key = head
                .headers()
                .get("x-api-key")
                .and_then(|key| key.to_str().ok().map(String::from));
            async move { account_of(api_key?).await }
        })
        .limit(
            per_minute("account", 1)
                .by(key::from_fn("account", |head| {
                    Some(head.extensions().get::<Account>()?.name)
                }))
                .when_missing(MissingKey::Refuse)
                .quota_with(|head| Some(head.extensions().get::<Account>()?.quota)),
        )
        .limit(per_minute("reports", 1).when(when::route("/api/reports/{id}")))
}

async fn app(policy: Policy) -> SocketAddr {
    let name = |parts: Extensions| async move {
        parts
            .get::<Account>()
            .map_or("stranger", |account| account.name)
    };
    let api = Router::new()
        .route("/reports/{id}", get(name))
        .route("/free", get(name));
    let app = Router::new()
        .route("/", get(name))
        .route("/healthz", get(name))
        .nest("/api", api);
    served(app.layer(stopped_layer(policy))).await
}

/// Returns the status and the last line of the response.
async fn ask(address: SocketAddr, request_line: &str, headers: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request =
        format!("{request_line} HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let status = response.split(' ').nth(1).unwrap().parse().unwrap();
    (status, response.rsplit("\r\n").next().unwrap().to_owned())
}

async fn statuses<const N: usize>(address: SocketAddr, path: &str, api_key: &str) -> [u16; N] {
    let mut statuses = [0; N];
    for status in &mut statuses {
        *status = ask(
            address,
            &format!("GET {path}"),
            &format!("x-api-key: {api_key}\r\n"),
        )
        .await
        .0;
    }
    statuses
}

#[tokio::test]
async fn account_has_quota_of_its_tier() {
    let app = app(policy()).await;
    assert_eq!(
        ask(app, "GET /", "x-api-key: pro-key\r\n").await,
        (200, "pro".into())
    );
    assert_eq!(statuses(app, "/", "free-key").await, [200, 200, 429]);
    assert_eq!(
        statuses(app, "/", "pro-key").await,
        [200, 200, 200, 200, 200, 429]
    );
    assert_eq!(statuses(app, "/", "leaked-key").await, [403]);
    assert_eq!(statuses(app, "/", "unknown").await, [400]);
    assert_eq!(
        statuses(app, "/healthz", "leaked-key").await,
        [403],
        "blocked there too"
    );
    for _ in 0..5 {
        assert_eq!(ask(app, "GET /healthz", "").await, (200, "stranger".into()));
    }
    let preflight = "origin: https://b.test\r\naccess-control-request-method: PUT\r\n";
    assert_ne!(ask(app, "OPTIONS /", preflight).await.0, 400);
    assert_eq!(ask(app, "OPTIONS /", "").await.0, 400);
}

#[tokio::test]
async fn route_is_recognized_by_full_pattern() {
    let app = app(policy()).await;
    assert_eq!(statuses(app, "/api/reports/1", "pro-key").await, [200]);
    assert_eq!(statuses(app, "/api/reports/2", "pro-key").await, [429]);
    assert_eq!(statuses(app, "/api/free", "pro-key").await, [200, 200]);
}

#[tokio::test]
async fn peers_are_listed_by_their_address() {
    let local = || when::address_in(key::client_ip(), ["127.0.0.0/8"]);
    let once = || per_minute("once", 1);
    let blocking = app(Policy::new().block(local()).limit(once())).await;
    assert_eq!(statuses(blocking, "/", "x").await, [403, 403]);
    let allowing = app(Policy::new().block(local()).allow(local()).limit(once())).await;
    assert_eq!(statuses(allowing, "/", "x").await, [200, 200, 200]);
    let elsewhere = app(Policy::new()
        .block(when::address_in(key::client_ip(), ["10.0.0.0/8"]))
        .limit(once()))
    .await;
    assert_eq!(statuses(elsewhere, "/", "x").await, [200, 429]);
}
