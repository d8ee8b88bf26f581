//! Tests of the metrics of live rules, such as the version and the changes of people.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use tower::ServiceExt;
use tower_quota::{MemoryStore, Policy, RateLimitLayer};
use tower_quota_admin::{AdminOptions, Role};
use tower_quota_live::{
    BlockTarget, LiveOptions, LiveRules, MemoryRules, NewBlock, NewVersion, RedisRules, RuleStore,
    WithoutRules,
};

use crate::recorder::{recording, samples};

fn document(text: &str) -> NewVersion {
    NewVersion::new(text, "ann")
}

fn reloads(result: &str) -> String {
    format!("tower_quota_rules_reloads_total{{result=\"{result}\"}}")
}

#[test]
fn live_rules_report_version_and_changes() {
    let scrape = recording(async {
        let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
        let live = LiveRules::start(
            layer.handle(),
            MemoryRules::new(),
            LiveOptions::new().without_rules(WithoutRules::Refuse),
        )
        .await
        .unwrap();
        let first = live
            .put(None, document("allow_empty: true\n"))
            .await
            .unwrap();
        let network = BlockTarget::Network("203.0.113.0/24".parse().unwrap());
        live.block(network, NewBlock::block(Duration::from_secs(60), "ann"))
            .await
            .unwrap();
        live.rollback(None, first.number, "ann").await.unwrap();
        assert!(live.refresh().await);
    });
    let samples = samples(&scrape);
    assert_eq!(samples["tower_quota_rules_version"], 2.0);
    let [applied, confirmed] = ["applied", "confirmed"]
        .map(|age| samples[&format!("tower_quota_rules_{age}_timestamp_seconds")]);
    assert!(
        applied > 1.7e9 && confirmed >= applied,
        "{applied} {confirmed}"
    );
    assert!(samples[&reloads("ok")] >= 3.0);
    // The store was empty at the start.
    assert_eq!(
        (samples[&reloads("rejected")], samples[&reloads("failed")]),
        (0.0, 1.0)
    );
    for kind in ["put", "block", "rollback"] {
        assert_eq!(
            samples[&format!("tower_quota_audit_events_total{{kind=\"{kind}\"}}")],
            1.0,
            "{kind}"
        );
    }
}

#[test]
fn refused_requests_of_admin_api_are_counted() {
    let scrape = recording(async {
        let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
        let token = "a token of the tests";
        let options = AdminOptions::new().bearer_token_of_role(Role::Read, "dashboard", token);
        let admin = tower_quota_admin::router(layer.handle(), options).unwrap();
        let reset = r#"{ "limit": "minute", "key": "ann" }"#;
        for (token, path, body) in [
            ("wrong", "/v1/health", ""),
            (token, "/v1/health", ""),
            (token, "/v1/clients/reset", reset),
        ] {
            let method = if body.is_empty() { "GET" } else { "POST" };
            let request = Request::builder().method(method).uri(path);
            let request = request.header("authorization", format!("Bearer {token}"));
            let request = request.header("content-type", "application/json");
            let body = Body::from(body);
            admin
                .clone()
                .oneshot(request.body(body).unwrap())
                .await
                .unwrap();
        }
    });
    let samples = samples(&scrape);
    for (role, status) in [("none", 401), ("read", 200), ("read", 403)] {
        let series =
            format!("tower_quota_admin_requests_total{{role=\"{role}\",status=\"{status}\"}}");
        assert_eq!(samples.get(&series), Some(&1.0), "{series} {samples:?}");
    }
}

#[test]
fn requests_with_readable_keys_are_counted() {
    let scrape = recording(async {
        let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
        let token = "a token of the tests";
        let options = AdminOptions::new().bearer_token_of_role(Role::Operate, "ann", token);
        let options = options.allow_showing_keys();
        let admin = tower_quota_admin::router(layer.handle(), options).unwrap();
        for path in ["/v1/top?show_keys=true", "/v1/top"] {
            let request = Request::get(path).header("authorization", format!("Bearer {token}"));
            let answer = admin.clone().oneshot(request.body(Body::empty()).unwrap());
            assert_eq!(answer.await.unwrap().status(), 200);
        }
    });
    let series = "tower_quota_admin_shown_keys_total{role=\"operate\"}";
    assert_eq!(samples(&scrape).get(series), Some(&1.0));
}

#[test]
fn empty_store_has_version_zero() {
    let scrape = recording(async {
        let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
        let options = LiveOptions::new().without_rules(WithoutRules::Refuse);
        LiveRules::start(layer.handle(), MemoryRules::new(), options)
            .await
            .unwrap();
    });
    let samples = samples(&scrape);
    assert_eq!(samples["tower_quota_rules_version"], 0.0);
    assert_eq!(samples[&reloads("failed")], 1.0);
    assert!(!samples.contains_key("tower_quota_rules_hash"));
}

/// Returns the published version and hash after an instance has put all texts in turn.
fn published_after(texts: &[&str]) -> [f64; 2] {
    let scrape = recording(async {
        let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
        let options = LiveOptions::new().without_rules(WithoutRules::Refuse);
        let live = LiveRules::start(layer.handle(), MemoryRules::new(), options)
            .await
            .unwrap();
        for text in texts {
            live.put(None, document(text)).await.unwrap();
        }
    });
    let samples = samples(&scrape);
    ["version", "hash"].map(|name| samples[&format!("tower_quota_rules_{name}")])
}

#[test]
fn instances_with_one_text_publish_one_hash() {
    let [old, new] = ["5/minute", "6/minute"]
        .map(|quota| format!("limits: [{{ name: minute, quota: {quota} }}]\n"));
    let [first, first_hash] = published_after(&[&old]);
    let [second, second_hash] = published_after(&[&old, &new]);
    let [third, third_hash] = published_after(&[&old, &new, &old]);
    assert_eq!([first, second, third], [1.0, 2.0, 3.0]);
    assert_eq!(first_hash, third_hash);
    assert_ne!(first_hash, second_hash);
    assert!(first_hash > 0.0);
}

#[test]
fn dead_source_confirms_nothing() {
    let scrape = recording(async {
        let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
        let dead = RedisRules::new("redis://127.0.0.1:1", "dead").unwrap();
        let options = LiveOptions::new().start_deadline(Duration::from_millis(1));
        let options = options.without_rules(WithoutRules::Refuse);
        let live = LiveRules::start(layer.handle(), dead, options)
            .await
            .unwrap();
        assert!(!live.refresh().await);
    });
    let samples = samples(&scrape);
    assert!(samples[&reloads("failed")] >= 1.0);
    assert_eq!(samples[&reloads("ok")], 0.0);
    assert_eq!(samples["tower_quota_rules_version"], 0.0);
    assert!(!samples.contains_key("tower_quota_rules_confirmed_timestamp_seconds"));
}

#[test]
fn rejection_is_a_gauge_that_ends_with_the_fix() {
    for (texts, expected) in [
        (vec!["allow_empty: true\n"], 0.0),
        (
            vec![
                "allow_empty: true\n",
                "limits: [{ name: one, quota: lots }]",
            ],
            1.0,
        ),
        (
            vec![
                "allow_empty: true\n",
                "limits: [{ name: one, quota: lots }]",
                "allow_empty: true\n",
            ],
            0.0,
        ),
    ] {
        let scrape = recording(async {
            let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
            let store: Arc<dyn RuleStore> = Arc::new(MemoryRules::new());
            store.put(None, document(texts[0])).await.unwrap();
            let live =
                LiveRules::start_shared(layer.handle(), Arc::clone(&store), LiveOptions::new());
            let live = live.await.unwrap();
            for text in &texts[1..] {
                // Another program does not check the document.
                store.put(None, document(text)).await.unwrap();
                assert!(live.refresh().await);
            }
        });
        assert_eq!(
            samples(&scrape)["tower_quota_rules_rejected"],
            expected,
            "{texts:?}"
        );
    }
}
