//! Tests that every outcome of a request and of a limit has a counter.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::{Request, StatusCode};
use tower::ServiceExt;
use tower_quota::settle::only_failures;
use tower_quota::{
    HeaderStyle, Limit, MemoryStore, MissingKey, OnStoreFailure, Policy, Quota, RateLimitHandle,
    RateLimitLayer, RequestHead, Store, key, metrics, when,
};
use tower_quota_testkit::{ManualClock, ScriptedAnswer, ScriptedStore};

use crate::recorder::{recording, samples};

/// Returns an app with two routes behind a layer.
fn app<S: Store>(layer: RateLimitLayer<S>) -> Router {
    Router::new()
        .route("/users/{id}", get(|| async {}))
        .route("/login", get(|| async {}))
        .layer(layer)
}

/// Sends a request from a client.
async fn send(app: &Router, path: &str, client: Option<&str>) -> StatusCode {
    let mut request = Request::get(path);
    if let Some(client) = client {
        request = request.header("x-client", client);
    }
    app.clone()
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap()
        .status()
}

fn is_client(head: &RequestHead<'_>, name: &str) -> bool {
    head.headers()
        .get("x-client")
        .is_some_and(|client| client == name)
}

fn by_client(name: &'static str, quota: Quota) -> Limit {
    Limit::new(name, quota)
        .by(key::header("x-client"))
        .when_missing(MissingKey::Refuse)
}

/// Asserts the values of all series with a prefix, except series with the value zero.
fn assert_counts(
    scrape: &metrics_exporter_prometheus::PrometheusHandle,
    prefix: &str,
    expected: &[(&str, f64)],
) {
    let samples = samples(scrape);
    let found: Vec<(&str, f64)> = samples
        .iter()
        .filter(|(name, value)| name.starts_with(prefix) && **value != 0.0)
        .map(|(name, value)| (&name[prefix.len()..], *value))
        .collect();
    let mut expected = expected.to_vec();
    expected.sort_by_key(|(name, _)| *name);
    assert_eq!(found, expected);
}

#[test]
fn decisions_are_counted_by_limit_and_route() {
    for headers in [&[][..], &[HeaderStyle::Draft11]] {
        let scrape = recording(async {
            let policy = Policy::new()
                .block(|head: &RequestHead<'_>| is_client(head, "banned"))
                .skip(|head: &RequestHead<'_>| is_client(head, "probe"))
                .limit(by_client("minute", Quota::per_minute(2)))
                .limit(by_client("trial", Quota::per_minute(1)).shadow());
            let layer =
                RateLimitLayer::new(MemoryStore::new(), policy).headers(headers.iter().cloned());
            let handle = layer.handle();
            let app = app(layer);
            for user in 0..3 {
                send(&app, &format!("/users/{user}"), Some("ann")).await;
            }
            send(&app, "/login", Some("bob")).await;
            assert_eq!(
                send(&app, "/login", Some("banned")).await,
                StatusCode::FORBIDDEN
            );
            assert_eq!(send(&app, "/login", None).await, StatusCode::BAD_REQUEST);
            send(&app, "/login", Some("probe")).await;
            send(&app, "/nowhere", Some("carl")).await;
            metrics::publish_stats("api", &handle.stats());
            metrics::publish_stats("api", &handle.stats());
        });
        assert_counts(
            &scrape,
            "tower_quota_requests_total",
            &[
                ("{route=\"/users/{id}\",outcome=\"allowed\"}", 2.0),
                ("{route=\"/users/{id}\",outcome=\"limited\"}", 1.0),
                ("{route=\"/login\",outcome=\"allowed\"}", 1.0),
                ("{route=\"/login\",outcome=\"blocked\"}", 1.0),
                ("{route=\"/login\",outcome=\"missing_key\"}", 1.0),
                ("{route=\"/login\",outcome=\"skipped\"}", 1.0),
                ("{route=\"none\",outcome=\"allowed\"}", 1.0),
            ],
        );
        assert_counts(
            &scrape,
            "tower_quota_decisions_total",
            &[
                (
                    "{limit=\"minute\",route=\"/users/{id}\",outcome=\"allowed\"}",
                    2.0,
                ),
                (
                    "{limit=\"minute\",route=\"/users/{id}\",outcome=\"limited\"}",
                    1.0,
                ),
                (
                    "{limit=\"minute\",route=\"/login\",outcome=\"allowed\"}",
                    1.0,
                ),
                ("{limit=\"minute\",route=\"none\",outcome=\"allowed\"}", 1.0),
                (
                    "{limit=\"trial\",route=\"/users/{id}\",outcome=\"allowed\"}",
                    1.0,
                ),
                (
                    "{limit=\"trial\",route=\"/users/{id}\",outcome=\"shadowed\"}",
                    2.0,
                ),
                (
                    "{limit=\"trial\",route=\"/login\",outcome=\"allowed\"}",
                    1.0,
                ),
                ("{limit=\"trial\",route=\"none\",outcome=\"allowed\"}", 1.0),
            ],
        );
        assert_counts(
            &scrape,
            "tower_quota_retry_after_seconds_count",
            &[("{limit=\"minute\"}", 1.0)],
        );
        assert_counts(
            &scrape,
            "tower_quota_refused_clients",
            &[("{layer=\"api\"}", 1.0)],
        );
    }
}

#[test]
fn admissions_near_the_limit_are_counted() {
    let scrape = recording(async {
        let policy = Policy::new()
            .limit(by_client("ten", Quota::per_hour(10)))
            .limit(by_client("trial", Quota::per_hour(1)).shadow())
            .limit(by_client("two", Quota::per_hour(2)).when(when::path("/login")));
        let layer = RateLimitLayer::new(MemoryStore::new(), policy);
        let handle = layer.handle();
        let app = app(layer);
        // The eighth request leaves a fifth of `ten`, and the ninth and the tenth leave less.
        for number in 1..=12 {
            let status = send(&app, "/users/1", Some("ann")).await;
            assert_eq!(status.is_success(), number <= 10);
        }
        // Only `two` refuses the third request, so `ten` counts no admission.
        for _ in 0..3 {
            send(&app, "/login", Some("bob")).await;
        }
        metrics::publish_stats("api", &handle.stats());
    });
    assert_counts(
        &scrape,
        "tower_quota_near_limit_total",
        &[
            ("{limit=\"ten\"}", 2.0),
            ("{limit=\"trial\"}", 2.0),
            ("{limit=\"two\"}", 1.0),
        ],
    );
}

#[test]
fn longest_wait_of_refused_clients_is_published() {
    let gauge = "tower_quota_longest_wait_seconds{layer=\"api\"}";
    let scrape = recording(async {
        let policy = Policy::new()
            .limit(by_client("day", Quota::per_day(1)).when(when::path("/login")))
            .limit(by_client("hour", Quota::per_hour(1)));
        let layer = RateLimitLayer::new(MemoryStore::new(), policy);
        let handle = layer.handle();
        metrics::publish_stats("idle", &handle.stats());
        let app = app(layer);
        for (path, client) in [("/login", "ann"), ("/users/1", "bob")] {
            send(&app, path, Some(client)).await;
            let status = send(&app, path, Some(client)).await;
            assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
        }
        metrics::publish_stats("api", &handle.stats());
    });
    let samples = samples(&scrape);
    assert_eq!(samples[&gauge.replace("api", "idle")], 0.0);
    assert!(
        (80_000.0..=86_400.0).contains(&samples[gauge]),
        "{}",
        samples[gauge]
    );
}

#[test]
fn queued_and_impossible_requests_are_counted() {
    let scrape = recording(async {
        let one = Quota::new(1, Duration::from_millis(1))
            .leaky_bucket()
            .burst(5);
        let policy = Policy::new()
            .limit(Limit::new("turns", one).when(when::path("/login")))
            .limit(
                Limit::new("units", Quota::per_second(2))
                    .cost_with(|_| 3)
                    .when(when::not(when::path("/login"))),
            );
        // Stop the clock, so that the waits do not depend on the speed of the machine.
        let layer =
            RateLimitLayer::new(MemoryStore::with_clock(10, ManualClock::default()), policy);
        let handle = layer.handle();
        let app = app(layer);
        send(&app, "/login", None).await;
        tokio::join!(
            send(&app, "/login", None),
            send(&app, "/login", None),
            send(&app, "/login", None)
        );
        assert_eq!(send(&app, "/users/1", None).await, StatusCode::BAD_REQUEST);
        metrics::publish_stats("api", &handle.stats());
    });
    let samples = samples(&scrape);
    assert_eq!(
        samples["tower_quota_decisions_total{limit=\"turns\",route=\"/login\",outcome=\"queued\"}"],
        3.0
    );
    assert_eq!(
        samples["tower_quota_requests_total{route=\"/login\",outcome=\"queued\"}"],
        3.0
    );
    assert_eq!(
        samples["tower_quota_requests_total{route=\"/users/{id}\",outcome=\"never\"}"],
        1.0
    );
    assert_eq!(
        samples["tower_quota_decisions_total{limit=\"units\",route=\"/users/{id}\",outcome=\"never\"}"],
        1.0
    );
}

#[test]
fn store_failures_are_counted_by_choice() {
    let scrape = recording(async {
        let store = ScriptedStore::new();
        store.set_default(ScriptedAnswer::error("no answer"));
        let login = || when::path("/login");
        let policy = Policy::new()
            .limit(Limit::new("open", Quota::per_minute(5)).when(when::not(login())))
            .limit(
                Limit::new("closed", Quota::per_minute(5))
                    .when(login())
                    .on_store_failure(OnStoreFailure::Refuse),
            );
        let layer = RateLimitLayer::new(store, policy);
        let handle = layer.handle();
        let app = app(layer);
        assert_eq!(send(&app, "/users/1", None).await, StatusCode::OK);
        assert_eq!(
            send(&app, "/login", None).await,
            StatusCode::SERVICE_UNAVAILABLE
        );
        metrics::publish_stats("api", &handle.stats());
    });
    let samples = samples(&scrape);
    for (series, expected) in [
        ("tower_quota_degraded_total{choice=\"allow\"}", 1.0),
        ("tower_quota_degraded_total{choice=\"refuse\"}", 1.0),
        ("tower_quota_degraded_total{choice=\"local\"}", 0.0),
        ("tower_quota_store_errors_total{kind=\"store\"}", 2.0),
        (
            "tower_quota_requests_total{route=\"/users/{id}\",outcome=\"degraded\"}",
            1.0,
        ),
        (
            "tower_quota_requests_total{route=\"/login\",outcome=\"unavailable\"}",
            1.0,
        ),
        (
            "tower_quota_decisions_total{limit=\"open\",route=\"/users/{id}\",outcome=\"degraded\"}",
            1.0,
        ),
        ("tower_quota_store_duration_seconds_count", 2.0),
    ] {
        assert_eq!(samples.get(series), Some(&expected), "{series}");
    }
}

#[test]
fn failed_refunds_are_counted() {
    let scrape = recording(async {
        let store = ScriptedStore::new();
        store.push(ScriptedAnswer::memory());
        store.set_default(ScriptedAnswer::error("no answer"));
        let limit = Limit::new("login", Quota::per_minute(5)).settle(only_failures());
        let app = app(RateLimitLayer::new(store, Policy::new().limit(limit)));
        assert_eq!(send(&app, "/login", None).await, StatusCode::OK);
        // The refund is a task.
        tokio::task::yield_now().await;
    });
    let expected = [("{kind=\"settle\"}", 1.0)];
    assert_counts(&scrape, "tower_quota_store_errors_total", &expected);
}

#[test]
fn local_shadow_hides_no_fail_open() {
    let scrape = recording(async {
        let store = ScriptedStore::new();
        store.set_default(ScriptedAnswer::error("no answer"));
        let policy = Policy::new()
            .limit(Limit::new("open", Quota::per_minute(5)))
            .limit(
                Limit::new("dry", Quota::per_minute(5))
                    .shadow()
                    .on_store_failure(OnStoreFailure::Local),
            );
        let layer = RateLimitLayer::new(store, policy);
        let handle = layer.handle();
        assert_eq!(send(&app(layer), "/login", None).await, StatusCode::OK);
        metrics::publish_stats("api", &handle.stats());
    });
    assert_counts(
        &scrape,
        "tower_quota_degraded_total",
        &[("{choice=\"allow\"}", 1.0)],
    );
    let expected = [("{route=\"/login\",outcome=\"degraded\"}", 1.0)];
    assert_counts(&scrape, "tower_quota_requests_total", &expected);
}

#[test]
fn only_uncounted_limits_are_degraded() {
    let scrape = recording(async {
        let store = ScriptedStore::new();
        store.set_default(ScriptedAnswer::error("no answer"));
        let of = |name, choice| Limit::new(name, Quota::per_minute(1)).on_store_failure(choice);
        let policy = Policy::new()
            .limit(of("local", OnStoreFailure::Local))
            .limit(of("open", OnStoreFailure::Allow))
            .limit(of("closed", OnStoreFailure::Refuse).when(when::path("/login")));
        let layer = RateLimitLayer::new(store, policy);
        let handle = layer.handle();
        let app = app(layer);
        assert_eq!(
            send(&app, "/login", None).await,
            StatusCode::SERVICE_UNAVAILABLE
        );
        assert_eq!(send(&app, "/users/1", None).await, StatusCode::OK);
        assert_eq!(
            send(&app, "/users/1", None).await,
            StatusCode::TOO_MANY_REQUESTS
        );
        metrics::publish_stats("api", &handle.stats());
    });
    assert_counts(
        &scrape,
        "tower_quota_decisions_total",
        &[
            (
                "{limit=\"local\",route=\"/users/{id}\",outcome=\"allowed\"}",
                1.0,
            ),
            (
                "{limit=\"local\",route=\"/users/{id}\",outcome=\"limited\"}",
                1.0,
            ),
            (
                "{limit=\"open\",route=\"/users/{id}\",outcome=\"degraded\"}",
                1.0,
            ),
        ],
    );
    let expected = [
        ("{route=\"/login\",outcome=\"unavailable\"}", 1.0),
        ("{route=\"/users/{id}\",outcome=\"allowed\"}", 1.0),
        ("{route=\"/users/{id}\",outcome=\"limited\"}", 1.0),
    ];
    assert_counts(&scrape, "tower_quota_requests_total", &expected);
}

#[test]
fn replaced_policies_continue_their_series() {
    let scrape = recording(async {
        let policy = |units| Policy::new().limit(Limit::new("minute", Quota::per_minute(units)));
        let layer = RateLimitLayer::new(MemoryStore::new(), policy(10));
        let handle: RateLimitHandle<MemoryStore> = layer.handle();
        let app = app(layer);
        send(&app, "/login", None).await;
        metrics::publish_stats("api", &handle.stats());
        send(&app, "/login", None).await;
        handle.replace_policy(policy(20));
        send(&app, "/login", None).await;
        metrics::publish_stats("api", &handle.stats());
    });
    let expected =
        "tower_quota_decisions_total{limit=\"minute\",route=\"/login\",outcome=\"allowed\"}";
    assert_eq!(samples(&scrape)[expected], 3.0);
}

#[test]
fn last_request_of_replaced_policy_is_counted() {
    let scrape = recording(async {
        let limit = Limit::new("line", Quota::per_second(10).leaky_bucket().queue(2));
        let policy = Policy::new().limit(limit);
        let layer = RateLimitLayer::new(MemoryStore::new(), policy);
        let handle: RateLimitHandle<MemoryStore> = layer.handle();
        let app = app(layer);
        send(&app, "/login", None).await;
        // A waiting request keeps the policy.
        let waiting = send(&app, "/login", None);
        let replacing = async {
            handle.replace_policy(Policy::new());
            metrics::publish_stats("api", &handle.stats());
        };
        tokio::join!(waiting, replacing);
    });
    let samples = samples(&scrape);
    for outcome in ["allowed", "queued"] {
        let series = format!(
            "tower_quota_decisions_total{{limit=\"line\",route=\"/login\",outcome=\"{outcome}\"}}"
        );
        assert_eq!(samples[&series], 1.0, "{outcome}");
    }
}

#[test]
fn layers_of_one_limit_add_up() {
    let scrape = recording(async {
        for name in ["first", "second"] {
            let policy = Policy::new().limit(Limit::new("minute", Quota::per_minute(10)));
            let layer = RateLimitLayer::new(MemoryStore::new(), policy);
            let handle = layer.handle();
            send(&app(layer), "/login", None).await;
            metrics::publish_stats(name, &handle.stats());
        }
    });
    assert_eq!(
        samples(&scrape)["tower_quota_requests_total{route=\"/login\",outcome=\"allowed\"}"],
        2.0
    );
}

#[test]
fn reloads_are_counted_with_their_version() {
    let scrape = recording(async {
        metrics::record_reload(Some(7));
        metrics::record_reload(None);
        metrics::record_rejected_rules();
        metrics::record_applied_rules(8, u64::MAX);
        metrics::record_audit_event("put");
    });
    let samples = samples(&scrape);
    assert_eq!(
        samples["tower_quota_rules_reloads_total{result=\"ok\"}"],
        1.0
    );
    assert_eq!(
        samples["tower_quota_rules_reloads_total{result=\"failed\"}"],
        1.0
    );
    assert_eq!(
        samples["tower_quota_rules_reloads_total{result=\"rejected\"}"],
        1.0
    );
    assert_eq!(samples["tower_quota_audit_events_total{kind=\"put\"}"], 1.0);
    assert_eq!(samples["tower_quota_rules_version"], 8.0);
    let hash = samples["tower_quota_rules_hash"];
    assert_eq!(hash, 281_474_976_710_655.0);
    assert!(samples["tower_quota_rules_applied_timestamp_seconds"] > 1.7e9);
    assert!(samples["tower_quota_rules_confirmed_timestamp_seconds"] > 1.7e9);
}

#[test]
fn quota_of_each_limit_is_published() {
    let scrape = recording(async {
        let policy = |units| {
            Policy::new()
                .limit(by_client("minute", Quota::per_minute(units)))
                .limit(by_client("busy", Quota::concurrent(3)))
        };
        let layer = RateLimitLayer::new(MemoryStore::new(), policy(120));
        layer.handle().replace_policy(policy(600));
    });
    let concurrent = "{limit=\"busy\",algorithm=\"concurrency limit\",units=\"3\",period=\"\"}";
    let bucket = "{limit=\"minute\",algorithm=\"token bucket\",units=\"600\",period=\"60\"}";
    assert_counts(
        &scrape,
        "tower_quota_limit_info",
        &[(concurrent, 1.0), (bucket, 1.0)],
    );
    let rates = [("{limit=\"minute\"}", 10.0)];
    assert_counts(&scrape, "tower_quota_limit_units_per_second", &rates);
}
