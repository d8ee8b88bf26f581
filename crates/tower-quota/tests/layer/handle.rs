//! Operations on a running layer.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, StatusCode};
use tower::{Layer, Service, ServiceExt};
use tower_quota::{
    ClientKey, HandleError, Key, Limit, MemoryStore, MissingKey, Name, OnStoreFailure, Outcome,
    Policy, Quota, RateLimitLayer, RequestHead, key,
};
use tower_quota_testkit::{ManualClock, ScriptedAnswer};

use crate::fixture::{Inner, StoreControl, slow_store};

pub(crate) fn layer(policy: Policy) -> RateLimitLayer<MemoryStore> {
    RateLimitLayer::new(
        MemoryStore::with_clock(1_000, ManualClock::default()),
        policy,
    )
}

pub(crate) fn per_api_key(units: u64) -> Policy {
    Policy::new().limit(
        Limit::new("key", Quota::per_minute(units))
            .by(key::header("x-api-key"))
            .when_missing(MissingKey::ShareOneCounter),
    )
}

pub(crate) fn request_of(api_key: &str) -> Request<()> {
    Request::builder()
        .header("x-api-key", api_key)
        .body(())
        .unwrap()
}

#[tokio::test]
async fn peek_reports_what_request_gets() {
    let layer = layer(per_api_key(2));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    assert_eq!(handle.peek("key", "ann").await.unwrap().remaining(), 2);
    for _ in 0..2 {
        service.clone().oneshot(request_of("ann")).await.unwrap();
    }
    let status = handle.peek("key", "ann").await.unwrap();
    assert_eq!(
        (status.remaining(), status.outcome),
        (0, Outcome::Refuse(Duration::from_secs(30)))
    );
    assert_eq!(handle.peek("key", "bob").await.unwrap().remaining(), 2);
    let ann = Key::owned(status_scope(), "ann");
    assert_eq!(handle.peek("key", &ann).await.unwrap().remaining(), 0);
}

#[tokio::test]
async fn early_handle_operates_finished_layer() {
    let layer = layer(per_api_key(2));
    let handle = layer.handle();
    let early = layer.layer(Inner::default());
    let layer = layer.attach_decision().max_waiting(7);
    let service = layer.layer(Inner::default());

    handle.block("key", "ann", Duration::from_secs(60)).unwrap();
    let answer = service.clone().oneshot(request_of("ann")).await.unwrap();
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    handle.replace_policy(Policy::new().block(|_: &RequestHead<'_>| true));
    for service in [early, service] {
        let answer = service.oneshot(request_of("bob")).await.unwrap();
        assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    }
}

#[tokio::test]
async fn setting_keeps_replaced_policy() {
    let layer = layer(per_api_key(2));
    layer.handle().replace_policy(per_api_key(7));
    let layer = layer.attach_decision();
    let left = layer.handle().peek("key", "ann").await.unwrap().remaining();
    assert_eq!(left, 7);
}

/// Returns the scope of the keys of a header.
fn status_scope() -> Name {
    use tower_quota::key::KeyExtractor;
    key::header("x-api-key").scope()
}

#[tokio::test]
async fn limiter_counts_on_the_limits_counter() {
    let leaky = Quota::per_minute(60).leaky_bucket();
    let layer = layer(
        per_api_key(3).limit(
            Limit::new("turns", leaky)
                .by(key::header("x-api-key"))
                .when_missing(MissingKey::Skip)
                .max_wait(Duration::from_secs(5)),
        ),
    );
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    let limiter = handle.limiter("key").unwrap();
    let (head, ()) = request_of("ann").into_parts();
    let ann = handle.key("key", &head).unwrap();

    service.clone().oneshot(request_of("ann")).await.unwrap();
    let Ok(decision) = limiter.check(&ann).await;
    assert_eq!(decision.statuses()[0].remaining(), 1);
    // A text is a value of the limit's key.
    let Ok(decision) = limiter.check("ann").await;
    assert_eq!(decision.statuses()[0].remaining(), 0);
    let refused = service.clone().oneshot(request_of("ann")).await.unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);

    // The queue is as long as the limit's, so neither converts the other's counter.
    let Ok(decision) = handle.limiter("turns").unwrap().peek("ann").await;
    let status = handle.peek("turns", "ann").await.unwrap();
    assert_eq!(decision.statuses()[0].limit, status.limit);
    assert!(matches!(
        handle.limiter("kye"),
        Err(HandleError::UnknownLimit { .. })
    ));
}

#[tokio::test]
async fn reset_releases_refused_client() {
    let layer = layer(per_api_key(1));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    service.clone().oneshot(request_of("ann")).await.unwrap();
    let refused = service.clone().oneshot(request_of("ann")).await.unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    handle.reset("key", "ann").await.unwrap();
    assert_eq!(
        service.oneshot(request_of("ann")).await.unwrap().status(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn grant_gives_units_up_to_full() {
    let layer = layer(per_api_key(3));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    for _ in 0..3 {
        service.clone().oneshot(request_of("ann")).await.unwrap();
    }
    for (units, given, left) in [(2, 2, 2), (100, 1, 3), (100, 0, 3)] {
        let granted = handle.grant("key", "ann", units).await.unwrap();
        assert_eq!((granted.taken, granted.remaining()), (given, left));
    }
}

#[tokio::test]
async fn grant_counts_under_a_changed_quota() {
    let layer = layer(per_api_key(2));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    for _ in 0..2 {
        service.clone().oneshot(request_of("ann")).await.unwrap();
    }
    handle.replace_policy(per_api_key(100));
    assert_eq!(
        handle.grant("key", "ann", 50).await.unwrap().remaining(),
        50
    );
}

#[tokio::test]
async fn grant_of_a_sliding_log_fails() {
    let log = Limit::new("key", Quota::per_minute(2).sliding_log()).by(key::header("x-api-key"));
    let error = layer(Policy::new().limit(log))
        .handle()
        .grant("key", "ann", 1)
        .await
        .unwrap_err();
    assert!(matches!(error, HandleError::NotGranted(limit) if limit.as_str() == "key"));
}

#[tokio::test]
async fn blocked_key_beside_another_is_blocked() {
    let layer = layer(per_api_key(9));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    handle
        .block("key", "ann", Duration::from_secs(600))
        .unwrap();
    let mut request = request_of("ann");
    request
        .headers_mut()
        .append("x-api-key", "bob".parse().unwrap());
    assert_eq!(
        service.oneshot(request).await.unwrap().status(),
        StatusCode::FORBIDDEN
    );
}

#[tokio::test]
async fn blocked_address_beside_header_is_blocked() {
    let by = key::header("x-api-key").or(key::client_ip());
    let layer = layer(Policy::new().limit(Limit::new("key", Quota::per_minute(9)).by(by)));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    handle
        .block("key", "203.0.113.7", Duration::from_secs(600))
        .unwrap();
    for (address, status) in [
        ([203, 0, 113, 7], StatusCode::FORBIDDEN),
        ([203, 0, 113, 8], StatusCode::OK),
    ] {
        let mut request = request_of("junk");
        request.extensions_mut().insert(IpAddr::from(address));
        assert_eq!(
            service.clone().oneshot(request).await.unwrap().status(),
            status,
            "{address:?}"
        );
    }
}

#[tokio::test]
async fn blocked_combination_with_second_header_is_blocked() {
    let by = || key::all((key::client_ip(), key::header("x-api-key")));
    let layer = layer(
        Policy::new().limit(
            Limit::new("key", Quota::per_minute(9))
                .by(by())
                .when_missing(MissingKey::ShareOneCounter),
        ),
    );
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    let from = |address: [u8; 4], keys: &[&str]| {
        let mut request = Request::builder().extension(IpAddr::from(address));
        for key in keys {
            request = request.header("x-api-key", *key);
        }
        request.body(()).unwrap()
    };
    let (client, stranger) = ([203, 0, 113, 7], [203, 0, 113, 8]);
    let ann = from(client, &["ann"]);
    handle
        .block("key", RequestHead::of(&ann), Duration::from_secs(600))
        .unwrap();
    let many: Vec<String> = (0..65).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (address, keys, status) in [
        (client, &["ann"] as &[&str], StatusCode::FORBIDDEN),
        (client, &["bob", "ann"], StatusCode::FORBIDDEN),
        (client, &many, StatusCode::FORBIDDEN),
        (client, &many[..63], StatusCode::OK),
        (client, &["bob"], StatusCode::OK),
        (stranger, &["ann"], StatusCode::OK),
    ] {
        let answer = service.clone().oneshot(from(address, keys)).await.unwrap();
        assert_eq!(answer.status(), status, "{address:?} {keys:?}");
    }
}

#[tokio::test]
async fn client_with_conflicting_keys_cannot_be_blocked() {
    let layer = layer(per_api_key(9));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    let mut request = request_of("ann");
    request
        .headers_mut()
        .append("x-api-key", "bob".parse().unwrap());
    let error = handle
        .block("key", RequestHead::of(&request), Duration::from_secs(600))
        .unwrap_err();
    assert!(matches!(error, HandleError::UnreadableKey(_)), "{error}");
    let keyless = Request::new(());
    assert_eq!(
        service.oneshot(keyless).await.unwrap().status(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn blocked_everyone_leaves_clients_with_keys() {
    let by = key::header("x-api-key").or(key::everyone());
    let layer = layer(Policy::new().limit(Limit::new("key", Quota::per_minute(9)).by(by)));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    handle
        .block("key", &Key::EVERYONE, Duration::from_secs(600))
        .unwrap();
    assert_eq!(
        service
            .clone()
            .oneshot(Request::new(()))
            .await
            .unwrap()
            .status(),
        StatusCode::FORBIDDEN
    );
    assert_eq!(
        service.oneshot(request_of("ann")).await.unwrap().status(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn blocked_client_gets_403_until_unblocked() {
    let layer = layer(per_api_key(9));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    handle
        .block("key", "ann", Duration::from_secs(600))
        .unwrap();
    let blocked = service.clone().oneshot(request_of("ann")).await.unwrap();
    assert_eq!(blocked.status(), StatusCode::FORBIDDEN);
    assert_eq!(
        service
            .clone()
            .oneshot(request_of("bob"))
            .await
            .unwrap()
            .status(),
        StatusCode::OK
    );
    assert!(handle.blocked_for("key", "ann").unwrap().is_some());
    assert!(handle.unblock("key", "ann").unwrap());
    assert!(!handle.unblock("key", "ann").unwrap());
    assert_eq!(
        service.oneshot(request_of("ann")).await.unwrap().status(),
        StatusCode::OK
    );
    handle.block("key", "ann", Duration::ZERO).unwrap();
    assert_eq!(handle.blocked_for("key", "ann").unwrap(), None);
}

#[tokio::test]
async fn unknown_limit_names_known_ones() {
    let handle = layer(per_api_key(9)).handle();
    let error = handle.peek("kye", "ann").await.unwrap_err();
    assert!(matches!(&error, HandleError::UnknownLimit { name, .. } if name == "kye"));
    assert_eq!(
        error.to_string(),
        "the policy has no limit \"kye\": its limits are key"
    );
}

#[tokio::test]
async fn replaced_policy_keeps_counters() {
    let layer = layer(per_api_key(2));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    service.clone().oneshot(request_of("ann")).await.unwrap();
    handle.replace_policy(per_api_key(1));
    let response = service.clone().oneshot(request_of("ann")).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let response = service.clone().oneshot(request_of("ann")).await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    handle.replace_policy(Policy::new());
    assert_eq!(
        service.oneshot(request_of("ann")).await.unwrap().status(),
        StatusCode::OK
    );
}

/// Asserts that alternating policies mix no decision while requests run.
///
/// Each request is answered by the policy that has read it: the limit in its fields is the one in its decision.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_policies_mix_no_decision() {
    const UNITS: [u64; 2] = [1_000_000, 2_000_000];
    let policy = |units| {
        let limit = Limit::new(
            if units == UNITS[0] { "one" } else { "two" },
            Quota::per_hour(units),
        );
        Policy::new().limit(limit.settle(tower_quota::settle::only_failures()))
    };
    let layer = RateLimitLayer::new(slow_store(), policy(UNITS[0])).attach_decision();
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    let answered = Arc::new(AtomicUsize::new(0));
    let requests = {
        let answered = Arc::clone(&answered);
        tokio::spawn(async move {
            while answered.load(Ordering::Relaxed) < 500 {
                let response = service.clone().oneshot(Request::new(())).await.unwrap();
                let fields = response.headers()["ratelimit-policy"]
                    .to_str()
                    .unwrap()
                    .to_owned();
                let decision: &tower_quota::Decision = response.extensions().get().unwrap();
                let status = decision.statuses()[0];
                assert_eq!(
                    status.limit,
                    UNITS[usize::from(status.name.as_str() == "two")]
                );
                assert!(
                    fields.contains(&format!("\"{}\";q={}", status.name, status.limit)),
                    "{fields}"
                );
                answered.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let mut round = 0;
    while answered.load(Ordering::Relaxed) < 500 && !requests.is_finished() {
        round += 1;
        handle.replace_policy(policy(UNITS[round % 2]));
        tokio::task::yield_now().await;
    }
    requests.await.unwrap();
    // Every request succeeded, so every charge was refunded.
    for (name, units) in [("one", UNITS[0]), ("two", UNITS[1])] {
        handle.replace_policy(policy(units));
        assert_eq!(
            handle.peek(name, &Key::EVERYONE).await.unwrap().remaining(),
            units
        );
    }
}

#[tokio::test(start_paused = true)]
async fn closed_queue_refuses_waiting_requests() {
    let quota = Quota::per_hour(1).leaky_bucket().queue(10);
    let queue = Limit::new("queue", quota).max_wait(Duration::from_secs(86_400));
    let layer = layer(Policy::new().limit(queue));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    service.clone().oneshot(Request::new(())).await.unwrap();
    let waiting = tokio::spawn(service.clone().oneshot(Request::new(())));
    tokio::task::yield_now().await;
    assert_eq!(
        handle
            .peek("queue", &Key::EVERYONE)
            .await
            .unwrap()
            .remaining(),
        8
    );
    handle.close_queue();
    let refused = waiting.await.unwrap().unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "3600");
    let refused = service.oneshot(Request::new(())).await.unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(
        handle
            .peek("queue", &Key::EVERYONE)
            .await
            .unwrap()
            .remaining(),
        9
    );
}

#[tokio::test]
async fn closures_run_once_when_store_fails() {
    let runs = Arc::new([const { AtomicUsize::new(0) }; 4]);
    let count = |which: usize| {
        let runs = Arc::clone(&runs);
        move || runs[which].fetch_add(1, Ordering::Relaxed)
    };
    let (when, by, cost, quota) = (count(0), count(1), count(2), count(3));
    let limit = Limit::new("local", Quota::per_minute(10))
        .when(move |_: &tower_quota::RequestHead<'_>| {
            when();
            true
        })
        .by(key::from_fn("user", move |_| {
            by();
            Some("ann")
        }))
        .cost_with(move |_| {
            cost();
            2
        })
        .quota_with(move |_| {
            quota();
            Some(Quota::per_minute(20))
        })
        .on_store_failure(OnStoreFailure::Local);
    let store = slow_store();
    store.fail(true);
    let layer = RateLimitLayer::new(store, Policy::new().limit(limit));
    let mut service = layer.layer(Inner::default());
    let response = service
        .ready()
        .await
        .unwrap()
        .call(Request::new(()))
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(
        runs.each_ref().map(|runs| runs.load(Ordering::Relaxed)),
        [1; 4]
    );
}

#[tokio::test(start_paused = true)]
async fn store_timeout_falls_back() {
    let store = slow_store();
    store.set_default(ScriptedAnswer::memory().held());
    let layer = RateLimitLayer::new(store, per_api_key(1)).store_timeout(Duration::from_millis(50));
    let response = layer
        .layer(Inner::default())
        .oneshot(request_of("ann"))
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn addresses_are_named_by_text() {
    let policy =
        Policy::new().limit(Limit::new("address", Quota::per_minute(9)).by(key::client_ip()));
    let handle = layer(policy).handle();
    let address: IpAddr = "203.0.113.7".parse().unwrap();
    assert!(handle.peek("address", "203.0.113.7").await.is_ok());
    assert!(handle.peek("address", address).await.is_ok());
    assert!(matches!(
        handle.peek("address", "ann").await,
        Err(HandleError::UnreadableKey(_))
    ));
}

/// Asserts this for a client whose key is the first part that the request has.
#[tokio::test]
async fn request_names_its_own_client() {
    let by = key::header("x-api-key").or(key::from_fn("tenant", |_| Some("everyone else")));
    let layer = layer(Policy::new().limit(Limit::new("key", Quota::per_minute(2)).by(by)));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    for request in [request_of("ann"), Request::new(())] {
        service.clone().oneshot(request.clone()).await.unwrap();
        let (head, ()) = request.into_parts();
        assert_eq!(handle.peek("key", &head).await.unwrap().remaining(), 1);
        assert_eq!(handle.reset("key", &head).await.unwrap().remaining(), 2);
    }
}

#[tokio::test]
async fn request_without_key_names_no_client() {
    let (head, ()) = Request::new(()).into_parts();
    let error = layer(per_api_key(1))
        .handle()
        .peek("key", &head)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("\"key\""), "{error}");
}

#[test]
fn client_keys_hide_secrets_in_debug() {
    let request = request_of("s3cret");
    let key = Key::owned(status_scope(), "s3cret");
    for client in [
        ClientKey::from("s3cret"),
        ClientKey::from(&key),
        ClientKey::from(RequestHead::of(&request)),
    ] {
        let shown = format!("{client:?}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_requests_are_counted() {
    let layer = layer(Policy::new().limit(Limit::new(
        "queue",
        Quota::per_second(1).burst(9).leaky_bucket(),
    )));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    assert_eq!(handle.waiting(), 0);
    service.clone().oneshot(Request::new(())).await.unwrap();
    let waiting = tokio::spawn(service.clone().oneshot(Request::new(())));
    tokio::task::yield_now().await;
    assert_eq!(handle.waiting(), 1);
    waiting.await.unwrap().unwrap();
    assert_eq!(handle.waiting(), 0);
}

/// Asserts that the lists, look-ups and limits of a request come from one policy.
#[tokio::test(start_paused = true)]
async fn policy_replaced_during_look_up_waits() {
    let policy = |name: &'static str| {
        let late = |_: &tower_quota::RequestHead<'_>| async {
            #[expect(clippy::disallowed_methods, reason = "on tokio's paused clock")]
            tokio::time::sleep(Duration::from_millis(10)).await;
            Some(7_u64)
        };
        Policy::new()
            .look_up(Duration::from_secs(1), late)
            .limit(Limit::new(name, Quota::per_minute(9)))
    };
    let layer = layer(policy("old"));
    let (service, handle) = (layer.layer(Inner::default()), layer.handle());
    let request = tokio::spawn(service.clone().oneshot(Request::new(())));
    tokio::task::yield_now().await;
    handle.replace_policy(policy("new"));
    let names = |response: &http::Response<
        tower_quota::ResponseBody<http_body_util::Full<bytes::Bytes>>,
    >| {
        response.headers()["ratelimit-policy"]
            .to_str()
            .unwrap()
            .to_owned()
    };
    assert!(names(&request.await.unwrap().unwrap()).starts_with("\"old\""));
    assert!(names(&service.oneshot(Request::new(())).await.unwrap()).starts_with("\"new\""));
}
