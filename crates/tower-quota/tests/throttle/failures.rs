//! Refusals, failures of the store and errors of the inner service are different errors.

use std::convert::Infallible;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tower::buffer::Buffer;
use tower::{BoxError, Layer, ServiceBuilder, ServiceExt, service_fn};
use tower_quota::throttle::{StoreFailure, Throttled};
use tower_quota::{Limiter, Quota, ThrottleLayer, throttle::ThrottleError};
use tower_quota_testkit::{ScriptedAnswer, ScriptedStore};

use crate::fixture::{Order, Printer, SECOND, limiter, user};
use crate::log::Log;

/// Held by tests with a failing store. Another thread must not register the warning while a test records log lines.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn unavailable() -> Limiter<ScriptedStore> {
    let store = ScriptedStore::new();
    store.set_default(ScriptedAnswer::error("connection refused"));
    Limiter::new(store, "limit", Quota::per_second(1))
}

#[tokio::test]
async fn failed_store_allows_by_default() {
    let _alone = ALONE.lock().await;
    let (printer, reported) = (Printer::default(), Arc::new(Mutex::new(Vec::new())));
    let errors = Arc::clone(&reported);
    let throttle = ThrottleLayer::new(unavailable(), user)
        .on_store_error(move |error| errors.lock().unwrap().push(error.to_string()));
    let service = throttle.layer(printer.clone());
    for _ in 0..3 {
        service.clone().oneshot(Order::of("ann")).await.unwrap();
    }
    assert_eq!((printer.calls(), reported.lock().unwrap().len()), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn failed_store_is_logged_once_a_minute() {
    let _alone = ALONE.lock().await;
    let log = Log::default();
    let _guard = tower_quota_dev::record_log(log.clone());
    let service = ThrottleLayer::new(unavailable(), user).layer(Printer::default());
    for warnings in [1, 2] {
        for _ in 0..59 {
            service.clone().oneshot(Order::of("ann")).await.unwrap();
            tokio::time::advance(SECOND).await;
        }
        tokio::time::advance(SECOND).await;
        let lines = log.lines();
        assert_eq!(lines.len(), warnings, "{lines:?}");
        let (level, line) = &lines[0];
        assert_eq!(*level, tracing::Level::WARN);
        assert!(line.contains("connection refused"), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn lost_hold_has_its_own_warning() {
    let _alone = ALONE.lock().await;
    let log = Log::default();
    let _guard = tower_quota_dev::record_log(log.clone());
    let store = ScriptedStore::new();
    let quota = Quota::concurrent(3).ttl(SECOND * 12);
    let limiter = Limiter::new(store.clone(), "calls", quota);
    let never = service_fn(|_: Order| std::future::pending::<Result<Order, Infallible>>());
    let service = ThrottleLayer::new(limiter.clone(), user).layer(never);
    let call = tokio::spawn(service.oneshot(Order::of("ann")));
    tokio::task::yield_now().await;
    let memory = Limiter::new(store.memory().clone(), "calls", quota);
    let Ok(_) = memory.reset(&limiter.key_of("ann")).into_inner();
    for _ in 0..4 {
        store.clock().advance(SECOND);
        tokio::time::advance(SECOND).await;
        tokio::task::yield_now().await;
    }
    let lines = log.lines();
    let lost = "the store has lost units in use of the limit \"calls\", so they are taken again";
    assert!(
        lines.len() == 1 && lines[0].1.starts_with(lost),
        "{lines:?}"
    );
    call.abort();
}

#[tokio::test]
async fn failed_store_fails_by_choice() {
    let _alone = ALONE.lock().await;
    let printer = Printer::default();
    let throttle = ThrottleLayer::new(unavailable(), user).on_store_failure(StoreFailure::Fail);
    let error = throttle
        .layer(printer.clone())
        .oneshot(Order::of("ann"))
        .await
        .unwrap_err();
    assert!(matches!(error, ThrottleError::Store(_)), "{error:?}");
    assert!(error.source().is_some() && error.throttled().is_none());
    assert_eq!(
        error.to_string(),
        "the request was not sent: its limit could not be checked"
    );
    assert_eq!(printer.calls(), 0);
}

#[tokio::test]
async fn inner_error_passes_unchanged() {
    let broken =
        service_fn(async |_: Order| Err::<Order, _>(std::io::Error::other("no route to host")));
    let limiter = limiter(Quota::per_hour(3));
    let error = ThrottleLayer::new(limiter.clone(), user)
        .layer(broken)
        .oneshot(Order::of("ann"))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "no route to host");
    assert!(
        matches!(error, ThrottleError::Inner(error) if error.kind() == std::io::ErrorKind::Other)
    );
    // The request was sent, and is counted.
    assert_eq!(limiter.check_now("ann").remaining(), 1);
}

#[tokio::test]
async fn boxed_stacks_keep_the_refusal() {
    let throttle = || ThrottleLayer::global(limiter(Quota::per_second(1))).max_wait(Duration::ZERO);
    // Inside, the error is in a box. Outside, it becomes one.
    let outer = Buffer::new(throttle().layer(Printer::default()), 1);
    let inner = ServiceBuilder::new()
        .layer(throttle())
        .buffer(1)
        .service(Printer::default());
    outer.clone().oneshot(Order::of("ann")).await.unwrap();
    inner.clone().oneshot(Order::of("ann")).await.unwrap();
    let from_outer: BoxError = outer.oneshot(Order::of("ann")).await.unwrap_err();
    let from_inner: BoxError = inner.oneshot(Order::of("ann")).await.unwrap_err().into();
    for error in [from_outer, from_inner] {
        assert_eq!(error.to_string(), "the request was throttled and not sent");
        let refusal = error.source().unwrap().downcast_ref::<Throttled>().unwrap();
        assert!(refusal.retry_after() <= Some(SECOND) && refusal.decision().is_some());
        assert!(
            refusal
                .to_string()
                .starts_with("the turn is too far away: try again in "),
            "{refusal}"
        );
    }
}
