//! Limits that flag or delay requests over their quota, and connections that close after refusals.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use http::{Method, Request, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::{Layer, ServiceExt};
use tower_quota::{
    CloseConnection, ConfigError, Flagged, Key, Limit, MemoryStore, Over, Policy, Quota,
    RateLimitLayer, key,
};
use tower_quota_testkit::ManualClock;

use crate::axum_apps::{ask, layer, served};
use crate::fixture::{Inner, Limited, field, retry_after, tokio_now};
use crate::shared::{answer_to, assert_field, millis, per_hour, per_minute, policy_of, secs};

const THREE: Quota = Quota::per_hour(3).fixed_window();
const STEP: Duration = millis(500);

fn tarpit() -> Limit {
    let most = millis(1_200);
    Limit::new("tarpit", THREE).over(Over::Delay { step: STEP, most })
}

#[tokio::test]
async fn flagged_request_goes_ahead() {
    let limit = Limit::new("challenge", THREE).over(Over::Flag);
    let handler = |flagged: Flagged| async move { format!("{:?}", flagged.by("challenge")) };
    let layer = layer(limit).shadow_header();
    let app = served(Router::new().route("/", get(handler)).layer(layer)).await;
    for expected in ["false", "false", "false", "true", "true"] {
        let answer = ask(app, "GET", "/").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.ends_with(expected), "{answer}");
        assert!(!answer.contains("challenge"), "no field names it: {answer}");
    }
}

#[tokio::test]
async fn nested_layers_flag_together() {
    let flag = |name| per_hour(name, 1).over(Over::Flag);
    let handler = |flagged: Flagged| async move {
        let limits: Vec<String> = flagged.limits().map(|limit| limit.to_string()).collect();
        limits.join(",")
    };
    let app = Router::new().route("/", get(handler));
    let app = app.layer(layer(flag("inner"))).layer(layer(flag("outer")));
    let app = served(app).await;
    assert!(ask(app, "GET", "/").await.ends_with("\r\n\r\n"));
    assert!(ask(app, "GET", "/").await.ends_with("outer,inner"));
}

#[tokio::test(start_paused = true)]
async fn delay_grows_with_units_over_quota() {
    let limited = Limited::new(policy_of(tarpit()));
    for expected in [0, 0, 0, 500, 1_000, 1_200, 1_200] {
        let began = tokio_now();
        let answer = limited.get().await;
        assert_eq!(answer.status(), 200);
        let waited = tokio_now() - began;
        let expected = millis(expected);
        assert!(
            waited >= expected && waited <= expected + STEP / 100,
            "{waited:?}"
        );
    }
    limited.clock.advance(secs(3_600));
    let began = tokio_now();
    assert_eq!(limited.get().await.status(), 200);
    assert_eq!(tokio_now(), began);
}

#[tokio::test(start_paused = true)]
async fn debt_of_delay_ends_with_longest_delay() {
    for quota in [
        Quota::per_minute(6),
        Quota::per_minute(6).gcra(),
        Quota::per_minute(6).leaky_bucket(),
    ] {
        let most = millis(1_200);
        let tarpit = Limit::new("tarpit", quota).over(Over::Delay { step: STEP, most });
        let limited = Limited::new(policy_of(tarpit));
        for _ in 0..30 {
            assert_eq!(limited.get().await.status(), 200);
        }
        // Three units make the longest delay, and the next request takes the fourth.
        limited.clock.advance(secs(40));
        let began = tokio_now();
        assert_eq!(limited.get().await.status(), 200);
        assert_eq!(tokio_now(), began, "{quota:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn debt_of_windows_ends_with_longest_delay() {
    for quota in [
        Quota::per_minute(6).fixed_window(),
        Quota::per_minute(6).sliding_window(),
        Quota::per_minute(6).sliding_log(),
    ] {
        let most = millis(1_200);
        let tarpit = Limit::new("tarpit", quota).over(Over::Delay { step: STEP, most });
        let store = MemoryStore::with_clock(10, ManualClock::default());
        let layer = RateLimitLayer::new(store, policy_of(tarpit));
        let (handle, service) = (layer.handle(), layer.layer(Inner::default()));
        for _ in 0..30 {
            let request = Request::new(());
            assert_eq!(answer_to(&service, request).await.status(), 200);
        }
        // Three units make the longest delay.
        let status = handle.peek("tarpit", &Key::EVERYONE).await.unwrap();
        assert_eq!(status.debt(), 3, "{quota:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn refused_requests_do_not_exceed_longest_delay() {
    let most = millis(1_200);
    let tarpit = per_minute("tarpit", 6).over(Over::Delay { step: STEP, most });
    let day = Limit::new("day", Quota::per_day(2)).when(|head| head.method() == Method::POST);
    let limited = Limited::new(policy_of(tarpit).limit(day));
    for _ in 0..30 {
        limited.send(Request::post("/")).await;
    }
    limited.clock.advance(secs(40));
    let began = tokio_now();
    assert_eq!(limited.get().await.status(), 200);
    assert_eq!(tokio_now(), began);
}

#[tokio::test(start_paused = true)]
async fn delay_without_place_refuses_and_charges_nothing() {
    let limited = Limited::with(policy_of(tarpit()), |layer| layer.max_waiting(1));
    for _ in 0..3 {
        limited.get().await;
    }
    let mut waiting = std::pin::pin!(limited.get());
    assert!(timeout(STEP / 10, &mut waiting).await.is_err());
    for _ in 0..3 {
        let refused = limited.get().await;
        assert_eq!(refused.status(), 429);
        assert_field(&refused, "retry-after", "1");
        // The second unit over the quota each time, because refused requests get theirs back.
        assert_eq!(retry_after(&refused), STEP * 2);
    }
    assert_eq!(waiting.await.status(), 200);
    assert_eq!(limited.inner.calls(), 4);
}

#[tokio::test(start_paused = true)]
async fn full_queue_bounds_no_debt() {
    let quota = Quota::per_hour(3).leaky_bucket().queue(3);
    let most = millis(1_200);
    let tarpit = Limit::new("tarpit", quota).over(Over::Delay { step: STEP, most });
    let policy = policy_of(tarpit.by(key::header("k")));
    let limited = Limited::with(policy, |layer| layer.max_waiting(1));
    let ask = |client| limited.send(Request::get("/").header("k", client));
    for client in ["ann", "bob"].repeat(3) {
        assert_eq!(ask(client).await.status(), 200);
    }
    let mut waiting = std::pin::pin!(ask("bob"));
    assert!(timeout(STEP / 10, &mut waiting).await.is_err());
    assert_eq!(ask("ann").await.status(), 429);
}

#[test]
fn delay_over_holds_is_an_error() {
    let most = Duration::from_secs(1);
    let limit = Limit::new("streams", Quota::concurrent(2)).over(Over::Delay { step: STEP, most });
    let error = Policy::new().try_limit(limit).unwrap_err();
    assert!(matches!(error, ConfigError::DelayedHold(limit) if limit.as_str() == "streams"));
}

#[test]
fn delay_without_step_is_an_error() {
    let (step, most) = (Duration::ZERO, secs(1));
    let limit = Limit::new("tarpit", THREE).over(Over::Delay { step, most });
    let error = Policy::new().try_limit(limit).unwrap_err();
    assert!(error.to_string().contains("\"tarpit\""), "{error}");
}

fn by_key(units: u64) -> Limit {
    per_minute("minute", units).by(key::header("k"))
}

#[tokio::test]
async fn connection_closes_after_refusals() {
    let handler = || async { "hello" };
    let policy = policy_of(by_key(1)).close_after(2);
    let layer = RateLimitLayer::new(MemoryStore::new(), policy);
    let app = served(Router::new().route("/", get(handler)).layer(layer)).await;
    let mut stream = TcpStream::connect(app).await.unwrap();
    for _ in 0..3 {
        stream
            .write_all(b"GET / HTTP/1.1\r\nhost: test\r\nk: ann\r\n\r\n")
            .await
            .unwrap();
    }
    // Ends although the client has not closed it.
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    let heads: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).collect();
    let is_closing: Vec<bool> = heads
        .iter()
        .map(|head| head.contains("connection: close"))
        .collect();
    assert_eq!(is_closing, [false, false, true], "{answers}");
}

#[tokio::test]
async fn admission_ends_row_of_refusals() {
    let clock = ManualClock::default();
    let store = MemoryStore::with_clock(100, clock.clone());
    let layer = RateLimitLayer::new(store, policy_of(by_key(1)).close_after(2));
    let service = layer.layer(Inner::default());
    let closes = async |client: &str, version: Version| {
        let request = Request::get("/").version(version).header("k", client);
        let answer = service.clone().oneshot(request.body(()).unwrap()).await;
        let answer = answer.unwrap();
        let is_marked = answer.extensions().get::<CloseConnection>().is_some();
        (
            answer.status().as_u16(),
            is_marked,
            field(&answer, "connection"),
        )
    };
    for _ in 0..2 {
        assert_eq!(closes("ann", Version::HTTP_11).await, (200, false, None));
        assert_eq!(closes("ann", Version::HTTP_11).await, (429, false, None));
        clock.advance(secs(60));
    }
    assert_eq!(closes("bob", Version::HTTP_2).await, (200, false, None));
    assert_eq!(closes("bob", Version::HTTP_2).await, (429, false, None));
    // The field is forbidden in HTTP/2.
    assert_eq!(closes("bob", Version::HTTP_2).await, (429, true, None));
}

#[tokio::test]
async fn old_refusals_do_not_close() {
    let clock = ManualClock::default();
    let local = MemoryStore::with_clock(100, clock.clone());
    let limit = Limit::new("hour", THREE).by(key::header("k"));
    let policy = policy_of(limit).close_after(2);
    let layer = RateLimitLayer::new(MemoryStore::new(), policy).local_store(local);
    let service = layer.layer(Inner::default());
    let closes = async || {
        let request = Request::get("/").header("k", "ann").body(()).unwrap();
        let answer = answer_to(&service, request).await;
        answer.extensions().get::<CloseConnection>().is_some()
    };
    for _ in 0..4 {
        assert!(!closes().await);
    }
    clock.advance(secs(300));
    assert!(!closes().await);
    assert!(closes().await);
}
