//! Spans of decisions that go to a store.

use std::collections::BTreeMap;
use std::convert::Infallible;

use http::{Request, Response};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{Key, Limit, Policy, Quota, RateLimitLayer, Store, key};
use tower_quota_testkit::{ScriptedAnswer, ScriptedStore};

use crate::log::Log;

const SEED: [u8; 16] = *b"a seed for tests";

/// Sends requests of one client, and returns the spans.
async fn spans<S: Store + 'static>(
    store: S,
    seed: Option<[u8; 16]>,
    requests: usize,
) -> Vec<BTreeMap<String, String>> {
    let log = Log::default();
    let _guard = tower_quota_dev::record_log(log.clone());
    let limit =
        |name, units| Limit::new(name, Quota::per_minute(units)).by(key::header("x-api-key"));
    let policy = Policy::new()
        .version(7)
        .limit(limit("minute", 1))
        .limit(limit("hour", 100));
    let layer = RateLimitLayer::new(store, policy);
    let layer = match seed {
        Some(seed) => layer.trace_store_calls(seed),
        None => layer,
    };
    let service = layer.layer(service_fn(async |_: Request<()>| {
        Ok::<_, Infallible>(Response::new(()))
    }));
    for _ in 0..requests {
        let request = Request::get("/secret-path")
            .header("x-api-key", "secret-key")
            .body(())
            .unwrap();
        service.clone().oneshot(request).await.unwrap();
    }
    log.spans()
}

#[tokio::test]
async fn store_call_is_one_span_of_hashes() {
    let spans = spans(ScriptedStore::new(), Some(SEED), 2).await;
    let client = key::header("x-api-key").key_of("secret-key");
    let hash = format!(
        "{:016x}",
        Key::owned(client.scope(), client.as_bytes()).digest(&SEED) >> 64
    );
    let [admitted, refused] = &spans[..] else {
        panic!("{spans:?}")
    };
    for span in [admitted, refused] {
        assert_eq!(
            (&*span["name"], &*span["otel.kind"]),
            ("rate_limit.check", "client")
        );
        assert_eq!(
            (
                &*span["rate_limit.limits"],
                &*span["rate_limit.rules.version"]
            ),
            ("2", "7")
        );
        assert_eq!(span["rate_limit.keys"], hash, "both limits count one key");
        assert!(span["rate_limit.store.duration_us"].parse::<u64>().is_ok());
        assert!(
            span.values().all(|value| !value.contains("secret")),
            "{span:?}"
        );
    }
    assert_eq!(
        (
            &*admitted["rate_limit.outcome"],
            &*refused["rate_limit.outcome"]
        ),
        ("allowed", "limited")
    );
    assert_eq!(refused["rate_limit.limit"], "minute");
}

#[tokio::test]
async fn failed_store_call_is_an_error() {
    let store = ScriptedStore::new();
    store.set_default(ScriptedAnswer::error("broken wire"));
    let spans = spans(store, Some(SEED), 1).await;
    assert_eq!(
        (
            &*spans[0]["rate_limit.outcome"],
            &*spans[0]["otel.status_code"]
        ),
        ("error", "ERROR")
    );
    assert_eq!(spans[0]["error.kind"], "store");
    assert!(spans[0]["error.message"].contains("broken wire"));
}

#[tokio::test]
async fn decisions_in_memory_have_no_span() {
    assert_eq!(
        spans(tower_quota::MemoryStore::new(), Some(SEED), 3).await,
        []
    );
}

#[tokio::test]
async fn store_calls_have_no_span_by_default() {
    assert_eq!(spans(ScriptedStore::new(), None, 3).await, []);
}
