//! A listener observes each decision once.

use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use http::Request;
use tower::{Layer, ServiceExt};
use tower_quota::{
    Decided, Decision, Limit, MissingKey, OnStoreFailure, Policy, Quota, RateLimitLayer,
};
use tower_quota::{Store, key, when};

use crate::fixture::{Inner, ScriptedStore, StoreControl};
use crate::shared::{answer_of, per_minute, policy_of, secs, stopped_store};

/// The sink decisions: label, path, and whether the store was unavailable.
type Observed = Arc<Mutex<Vec<(&'static str, String, bool)>>>;

fn listening<S: Store>(store: S, policy: Policy) -> (RateLimitLayer<S>, Observed) {
    let observed = Observed::default();
    let sink = Arc::clone(&observed);
    let layer = RateLimitLayer::new(store, policy)
        .attach_decision()
        .on_decision(move |decided| {
            assert_consistent(decided);
            let path = decided.head.uri().path().to_owned();
            sink.lock()
                .unwrap()
                .push((decided.label(), path, decided.is_degraded));
        });
    (layer, observed)
}

/// Asserts the invariants of every sink decision.
fn assert_consistent(decided: &Decided<'_>) {
    let admitted = decided.reason.is_none();
    if let Some(decision) = decided.decision {
        assert_eq!(decision.is_allowed(), admitted);
    }
    let attached = decided.head.extensions().get().map(Decision::statuses);
    assert_eq!(
        attached,
        decided
            .decision
            .filter(|_| admitted)
            .map(Decision::statuses)
    );
    assert_eq!(decided.label() == "queued", !decided.wait().is_zero());
}

async fn ask<S: Store>(layer: &RateLimitLayer<S>, path: &str) {
    layer
        .layer(Inner::default())
        .oneshot(Request::get(path).body(()).unwrap())
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_decision_is_observed_once() {
    let on =
        |path: &'static str| move |head: &tower_quota::RequestHead<'_>| head.uri().path() == path;
    let policy = Policy::new()
        .skip(when::path("/skipped"))
        .allow(when::path("/allowed"))
        .block(when::path("/blocked"))
        .look_up(secs(1), |_| std::future::ready(Some(7_u8)))
        .limit(per_minute("once", 1).when(on("/once")))
        .limit(
            Limit::new("queue", Quota::per_second(10).leaky_bucket().queue(9)).when(on("/queue")),
        )
        .limit(per_minute("dear", 1).cost_with(|_| 2).when(on("/dear")))
        .limit(
            per_minute("keyed", 1)
                .by(key::header("x-api-key"))
                .when_missing(MissingKey::Refuse)
                .when(on("/keyed")),
        );
    let (layer, observed) = listening(stopped_store(), policy);
    let paths = [
        "/skipped", "/allowed", "/blocked", "/none", "/once", "/once", "/queue", "/queue", "/dear",
        "/keyed",
    ];
    for path in paths {
        ask(&layer, path).await;
    }
    let observed = observed.lock().unwrap().clone();
    let expected = [
        ("blocked", "/blocked"),
        ("allowed", "/once"),
        ("limited", "/once"),
        ("allowed", "/queue"),
        ("queued", "/queue"),
        ("never", "/dear"),
        ("missing_key", "/keyed"),
    ];
    assert_eq!(
        observed,
        expected.map(|(label, path)| (label, path.to_owned(), false))
    );
}

#[tokio::test(start_paused = true)]
async fn full_queue_is_observed_as_one_refusal() {
    let queue = Limit::new("queue", Quota::per_second(1).leaky_bucket().queue(9))
        .on_store_failure(OnStoreFailure::Local);
    for failing in [false, true] {
        let store = ScriptedStore::new();
        store.fail(failing);
        let (layer, observed) = listening(store, policy_of(queue.clone()));
        let layer = layer.max_waiting(0);
        ask(&layer, "/").await;
        ask(&layer, "/").await;
        let expected = ["allowed", "limited"].map(|label| (label, String::from("/"), failing));
        assert_eq!(*observed.lock().unwrap(), expected);
    }
}

#[tokio::test]
async fn store_failure_is_observed() {
    let policy = policy_of(per_minute("free", 9))
        .limit(
            per_minute("local", 1)
                .when(|head| head.uri().path() == "/local")
                .on_store_failure(OnStoreFailure::Local),
        )
        .limit(
            per_minute("strict", 1)
                .when(|head| head.uri().path() == "/strict")
                .on_store_failure(OnStoreFailure::Refuse),
        );
    let store = ScriptedStore::new();
    let (layer, observed) = listening(store.clone(), policy);
    ask(&layer, "/").await;
    store.fail(true);
    for path in ["/", "/local", "/local", "/strict"] {
        ask(&layer, path).await;
    }
    let observed: Vec<_> = observed
        .lock()
        .unwrap()
        .iter()
        .map(|(label, _, degraded)| (*label, *degraded))
        .collect();
    let failing = [
        ("degraded", true),
        ("allowed", true),
        ("limited", true),
        ("unavailable", true),
    ];
    assert_eq!(observed[0], ("allowed", false));
    assert_eq!(observed[1..], failing);
}

#[tokio::test]
async fn inner_layer_is_not_degraded_by_outer() {
    let store = ScriptedStore::new();
    store.fail(true);
    let policy = || policy_of(per_minute("all", 9));
    let (inner, observed) = listening(stopped_store(), policy());
    let service = RateLimitLayer::new(store, policy()).layer(inner.layer(Inner::default()));
    answer_of(&service).await;
    assert_eq!(
        *observed.lock().unwrap(),
        [("allowed", String::from("/"), false)]
    );
}

#[tokio::test]
async fn listener_gets_keys_and_refusing_limits() {
    type Observation = (Vec<String>, Vec<String>, Option<Duration>);
    let observed: Arc<Mutex<Vec<Observation>>> = Arc::default();
    let sink = Arc::clone(&observed);
    let policy = policy_of(per_minute("user", 1).by(key::from_fn("user", |_| Some("s3cret"))))
        .limit(per_minute("everyone", 9));
    let store = stopped_store();
    let layer = RateLimitLayer::new(store, policy).on_decision(move |decided| {
        assert!(!format!("{decided:?}").contains("s3cret"));
        let keys = decided
            .keys()
            .map(|(limit, key)| format!("{limit} {}", String::from_utf8_lossy(key.as_bytes())));
        let limits = decided
            .refusing_limits()
            .map(|limit| limit.to_string())
            .collect();
        sink.lock()
            .unwrap()
            .push((keys.collect(), limits, decided.retry_after()));
    });
    ask(&layer, "/").await;
    ask(&layer, "/").await;
    let keys = ["user s3cret", "everyone "].map(String::from).to_vec();
    let expected = [
        (keys.clone(), Vec::new(), None),
        (keys, vec!["user".into()], Some(secs(60))),
    ];
    assert_eq!(*observed.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn closed_queue_is_observed_once() {
    let queue = Limit::new("queue", Quota::per_second(1).leaky_bucket().queue(9));
    let store = stopped_store();
    let (layer, observed) = listening(store, policy_of(queue));
    ask(&layer, "/").await;
    let mut waiting = Box::pin(layer.layer(Inner::default()).oneshot(Request::new(())));
    assert!(
        waiting
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    layer.handle().close_queue();
    assert_eq!(waiting.await.unwrap().status(), 429);
    assert_eq!(
        *observed.lock().unwrap(),
        ["allowed", "queued"].map(|label| (label, String::from("/"), false))
    );
}

#[tokio::test]
async fn listener_of_handle_hears_refusals_only() {
    let keyed = per_minute("minute", 1).by(key::header("x-api-key"));
    let layer = RateLimitLayer::new(stopped_store(), policy_of(keyed).version(3));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    layer.handle().on_refusal(move |decided| {
        let client = decided.refused_client();
        let client = client.map(|(limit, key)| (limit.as_str(), key.as_bytes().to_vec()));
        let request = decided.request_id().map(str::to_owned);
        sink.lock()
            .unwrap()
            .push((client, decided.version, request));
    });
    for id in ["first", "second"] {
        let request = Request::get("/").header("x-api-key", "ann");
        let request = request.header("x-request-id", id).body(()).unwrap();
        layer
            .layer(Inner::default())
            .oneshot(request)
            .await
            .unwrap();
    }
    let client = Some(("minute", b"ann".to_vec()));
    let expected = [(client, Some(3), Some(String::from("second")))];
    assert_eq!(*heard.lock().unwrap(), expected);
}
