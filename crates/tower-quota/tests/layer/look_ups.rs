//! Look-ups before a request is counted.

use std::collections::HashMap;
use std::future::{pending, ready};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Request;
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{
    Decision, Limit, MissingKey, OnStoreFailure, Policy, Quota, RateLimitLayer, RequestHead, key,
    when,
};

use crate::fixture::{
    Inner, LastRequest, Limited, ScriptedStore, StoreControl, slow_store, tokio_now,
};
use crate::shared::{answer_to, assert_field, millis, per_minute, secs};

const DEADLINE: Duration = millis(20);

#[derive(Clone)]
struct Tenant(&'static str, u64);

#[derive(Clone)]
struct Region(&'static str);

/// Returns the tenant of a request, by its API key.
fn tenant_of(head: &RequestHead<'_>) -> Option<Tenant> {
    let known = HashMap::from([
        ("k1", Tenant("acme", 2)),
        ("k2", Tenant("acme", 2)),
        ("k3", Tenant("globex", 3)),
    ]);
    known
        .get(head.headers().get("x-api-key")?.to_str().ok()?)
        .cloned()
}

/// Returns a limit by tenant, with the tenant's quota.
fn by_tenant() -> Limit {
    per_minute("tenant", 1)
        .by(key::from_fn("tenant", |head| {
            Some(head.extensions().get::<Tenant>()?.0)
        }))
        .quota_with(|head| Quota::try_new(head.extensions().get::<Tenant>()?.1, secs(60)).ok())
}

fn with_key(api_key: &str) -> http::request::Builder {
    Request::get("/").header("x-api-key", api_key)
}

/// Returns a value after a wait.
async fn after<T>(wait: Duration, value: T) -> Option<T> {
    #[expect(clippy::disallowed_methods, reason = "on tokio's paused clock")]
    tokio::time::sleep(wait).await;
    Some(value)
}

#[tokio::test]
async fn look_up_provides_keys_and_quotas() {
    let policy = Policy::new()
        .look_up(DEADLINE, |head| {
            let tenant = tenant_of(head);
            async move {
                tokio::task::yield_now().await;
                tenant
            }
        })
        .limit(by_tenant().when_missing(MissingKey::Refuse));
    let limited = Limited::new(policy);
    for (api_key, status) in [
        ("k1", 200),
        ("k2", 200),
        ("k1", 429),
        ("k3", 200),
        ("k3", 200),
        ("k3", 200),
        ("k3", 429),
    ] {
        assert_eq!(
            limited.send(with_key(api_key)).await.status(),
            status,
            "{api_key}"
        );
    }
    assert_eq!(limited.send(with_key("made up")).await.status(), 400);
    assert_eq!(limited.get().await.status(), 400);
    assert_eq!(limited.inner.calls(), 5);
}

#[tokio::test]
async fn handlers_find_looked_up_values() {
    let inner = service_fn(async |request: Request<()>| {
        let tenant = request.extensions().get::<Tenant>().unwrap().0;
        assert!(request.extensions().get::<Decision>().is_some());
        Ok::<_, std::convert::Infallible>(http::Response::new(tenant))
    });
    let policy = Policy::new()
        .look_up(DEADLINE, |head| ready(tenant_of(head)))
        .limit(by_tenant());
    let service = RateLimitLayer::new(slow_store(), policy)
        .attach_decision()
        .layer(inner);
    let response = answer_to(&service, with_key("k3").body(()).unwrap()).await;
    assert_field(&response, "ratelimit-policy", r#""tenant";q=3;w=60"#);
}

#[tokio::test(start_paused = true)]
async fn late_look_up_is_missing() {
    let policy = |wait: Duration| {
        Policy::new()
            .look_up(DEADLINE, move |_| after(wait, Tenant("acme", 2)))
            .limit(by_tenant().when_missing(MissingKey::Refuse))
    };
    let begun = tokio_now();
    assert_eq!(Limited::new(policy(DEADLINE / 2)).get().await.status(), 200);
    assert_eq!(tokio_now() - begun, DEADLINE / 2);
    let limited = Limited::new(policy(DEADLINE * 100));
    let begun = tokio_now();
    assert_eq!(limited.get().await.status(), 400);
    let waited = tokio_now() - begun;
    assert!(
        waited >= DEADLINE && waited < DEADLINE + millis(5),
        "{waited:?}"
    );
    assert_eq!(limited.inner.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn look_ups_run_together_with_own_deadlines() {
    let policy = Policy::new()
        .look_up(DEADLINE, |_| after(DEADLINE / 2, Tenant("acme", 2)))
        .look_up(DEADLINE / 2 + millis(5), |_| {
            after(DEADLINE / 2, Region("eu"))
        })
        .look_up(DEADLINE / 4, |_| pending::<Option<u8>>())
        .limit(by_tenant().when_missing(MissingKey::Refuse))
        .limit(
            per_minute("region", 9)
                .by(key::from_fn("region", |head| {
                    Some(head.extensions().get::<Region>()?.0)
                }))
                .when_missing(MissingKey::Refuse),
        );
    let limited = Limited::new(policy);
    let begun = tokio_now();
    assert_eq!(limited.get().await.status(), 200);
    assert_eq!(tokio_now() - begun, DEADLINE / 2);
    assert_eq!(limited.inner.last_seen().unwrap().statuses().len(), 2);
}

#[tokio::test]
async fn empty_look_up_keeps_outer_value() {
    let policy = Policy::new()
        .look_up(DEADLINE, |_| ready(None::<Tenant>))
        .limit(by_tenant().when_missing(MissingKey::Refuse));
    let limited = Limited::new(policy);
    assert_eq!(
        limited
            .send(Request::get("/").extension(Tenant("acme", 9)))
            .await
            .status(),
        200
    );
}

#[tokio::test]
async fn listed_request_skips_look_ups() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let policy = Policy::new()
        .skip(when::path("/skipped"))
        .allow(when::path("/allowed"))
        .block(when::path("/blocked"))
        .look_up(DEADLINE, move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            ready(None::<Tenant>)
        })
        .limit(by_tenant().when_missing(MissingKey::Skip));
    let limited = Limited::new(policy);
    for (path, lookups) in [("/skipped", 0), ("/allowed", 0), ("/blocked", 0), ("/", 1)] {
        limited.send(Request::get(path)).await;
        assert_eq!(asked.load(Ordering::Relaxed), lookups, "{path}");
    }
    // No limit applied, and the request was sent to the service.
    assert_eq!(limited.inner.calls(), 3);
    assert_eq!(limited.inner.last_seen(), None);
}

#[tokio::test]
async fn cancelled_request_drops_its_look_up() {
    struct Guard(Arc<AtomicUsize>);

    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    let dropped = Arc::new(AtomicUsize::new(0));
    let guarded = Arc::clone(&dropped);
    let policy = Policy::new()
        .look_up(secs(3_600), move |_| {
            let guard = Guard(Arc::clone(&guarded));
            async move {
                pending::<()>().await;
                drop(guard);
                None::<Tenant>
            }
        })
        .limit(per_minute("all", 1));
    let store = slow_store();
    let inner = Inner::default();
    let service = RateLimitLayer::new(store.clone(), policy).layer(inner.clone());
    let mut call = Box::pin(service.oneshot(Request::new(())));
    assert!(futures_poll(call.as_mut()).await.is_none());
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
    drop(call);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    assert_eq!(
        (store.charge_counts().len(), inner.calls()),
        (0, 0),
        "nothing was charged"
    );
}

/// Polls a future once, and returns its output if it is ready.
async fn futures_poll<F: Future>(mut call: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|cx| match call.as_mut().poll(cx) {
        std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    })
    .await
}

#[tokio::test]
async fn look_up_panic_reaches_its_request() {
    let policy = Policy::new()
        .look_up(DEADLINE, |head| {
            let panics = head.uri().path() == "/panics";
            async move {
                assert!(!panics, "look-up panics");
                None::<Tenant>
            }
        })
        .limit(per_minute("all", 1));
    let limited = Limited::new(policy);
    let service = limited.service.clone();
    let panics = AssertUnwindSafe(service)
        .0
        .oneshot(Request::get("/panics").body(()).unwrap());
    assert!(tokio::spawn(panics).await.unwrap_err().is_panic());
    assert_eq!(limited.get().await.status(), 200);
}

#[tokio::test]
async fn fallback_reads_look_up_value() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let policy = Policy::new()
        .look_up(DEADLINE, move |head| {
            count.fetch_add(1, Ordering::Relaxed);
            ready(tenant_of(head))
        })
        .limit(by_tenant().when_missing(MissingKey::Refuse))
        .on_store_failure(OnStoreFailure::Local);
    let store = ScriptedStore::new();
    store.fail(true);
    let service = RateLimitLayer::new(store, policy).layer(Inner::default());
    for status in [200, 200, 200, 429] {
        let response = answer_to(&service, with_key("k3").body(()).unwrap()).await;
        assert_eq!(response.status(), status);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 4, "once per request");
}
