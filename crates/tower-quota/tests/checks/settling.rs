//! Upgraded connections that hold no unit, and handlers that settle limits that do not exist.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::any;
use http::StatusCode;
use tower_quota::settle::{Reservation, by_handler};
use tower_quota::{Check, Limit, MemoryStore, Policy, Quota, RateLimitLayer};

use crate::fixture::{Client, in_memory, is_silent, minute, proves};

fn sockets() -> RateLimitLayer<MemoryStore> {
    in_memory(Policy::new().limit(Limit::new("sockets", Quota::concurrent(2))))
}

/// Upgrades a connection, which keeps the reservation if asked.
fn upgrade(mut request: Request, is_held: bool) -> Response {
    let reservation = request.extensions_mut().remove::<Reservation>();
    let kept = reservation.filter(|_| is_held);
    let upgrade = hyper::upgrade::on(request);
    tokio::spawn(async move {
        let _kept = kept;
        let _upgraded = upgrade.await;
        std::future::pending::<()>().await;
    });
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header("connection", "upgrade")
        .header("upgrade", "test")
        .body(Body::empty())
        .unwrap()
}

/// Upgrades a connection, and waits until the layer has settled the request.
async fn upgraded(layer: RateLimitLayer<MemoryStore>, is_held: bool) {
    let handle = layer.handle();
    let handler = move |request: Request| async move { upgrade(request, is_held) };
    let mut client = Client::of(Router::new().route("/", any(handler)).layer(layer)).await;
    let lines = "connection: upgrade\r\nupgrade: test\r\n";
    assert_eq!(client.get("/", lines).await, 101);
    let left = if is_held { 1 } else { 2 };
    let everyone = &tower_quota::Key::EVERYONE;
    while handle.peek("sockets", everyone).await.unwrap().remaining() != left {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn upgrade_without_reservation_is_reported() {
    proves(Check::UnheldUpgrade, 1, sockets, async |layer| {
        upgraded(layer, false).await;
    })
    .await;
}

#[tokio::test]
async fn upgrade_with_reservation_is_silent() {
    is_silent(sockets(), async |layer| upgraded(layer, true).await).await;
}

#[tokio::test]
async fn plain_response_of_hold_is_silent() {
    is_silent(sockets(), async |layer| {
        let app = Router::new().route("/", any(|| async { "hello" }));
        let mut client = Client::of(app.layer(layer)).await;
        assert_eq!(client.get("/", "").await, 200);
    })
    .await;
}

fn tokens() -> RateLimitLayer<MemoryStore> {
    let limit = Limit::new("tokens", Quota::per_hour(1_000)).settle(by_handler());
    in_memory(Policy::new().limit(limit).limit(minute()))
}

#[tokio::test]
async fn cost_above_the_longest_debt_is_reported() {
    let settle_units = async |layer, cost: u64| {
        let handler = move |reservation: Reservation| async move {
            assert!(reservation.settle("tokens", cost));
        };
        let app = Router::new().route("/", any(handler)).layer(layer);
        assert_eq!(Client::of(app).await.get("/", "").await, 200);
    };
    proves(Check::ExcessiveCost, 1, tokens, async |layer| {
        settle_units(layer, u64::MAX).await;
    })
    .await;
    is_silent(tokens(), async |layer| settle_units(layer, 25_000).await).await;
}

/// Sends three requests to a handler that settles this limit.
async fn settled(layer: RateLimitLayer<MemoryStore>, limit: &'static str, is_known: bool) {
    let handler = move |reservation: Reservation| async move {
        assert_eq!(reservation.settle(limit, 5), is_known);
    };
    let mut client = Client::of(Router::new().route("/", any(handler)).layer(layer)).await;
    for _ in 0..3 {
        assert_eq!(client.get("/", "").await, 200);
    }
}

#[tokio::test]
async fn unknown_limit_of_handler_is_reported() {
    proves(Check::UnknownLimit, 3, tokens, async |layer| {
        settled(layer, "tokn", false).await;
    })
    .await;
    is_silent(tokens(), async |layer| settled(layer, "tokens", true).await).await;
    // A limit that does not settle, or does not apply, is no mistake of spelling.
    is_silent(tokens(), async |layer| {
        settled(layer, "minute", false).await
    })
    .await;
}

#[tokio::test]
async fn limit_of_outer_layer_is_silent() {
    let layer_with = |name: &'static str| {
        let limit = Limit::new(name, Quota::per_hour(1_000)).settle(by_handler());
        in_memory(Policy::new().limit(limit))
    };
    let (outer, inner) = (layer_with("tokens"), layer_with("calls"));
    let handle = inner.handle();
    is_silent(outer, async |outer| {
        let handler = |reservation: Reservation| async move {
            assert!(reservation.settle("tokens", 5));
        };
        let app = Router::new().route("/", any(handler));
        let mut client = Client::of(app.layer(inner.clone()).layer(outer)).await;
        assert_eq!(client.get("/", "").await, 200);
    })
    .await;
    assert!(handle.mistakes().is_empty());
}
