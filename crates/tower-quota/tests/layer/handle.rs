//! Operations on a running layer.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Method, Request, StatusCode};
use tower::{Layer, Service, ServiceExt};
use tower_quota::{
    ClientKey, HandleError, Key, Limit, MemoryStore, MissingKey, Name, OnStoreFailure, Outcome,
    Policy, Quota, RateLimit, RateLimitHandle, RateLimitLayer, RequestHead, key,
};
use tower_quota_testkit::ScriptedAnswer;

use crate::fixture::{Inner, StoreControl, slow_store};
use crate::shared::{
    answer_of, answer_to, millis, per_hour, per_minute, policy_of, secs, serve, stopped_layer,
};

pub(crate) fn per_api_key(units: u64) -> Policy {
    policy_of(
        per_minute("key", units)
            .by(key::header("x-api-key"))
            .when_missing(MissingKey::ShareOneCounter),
    )
}

const TEN_MINUTES: Duration = Duration::from_secs(600);

type Handle = RateLimitHandle<MemoryStore>;

/// Returns the status of the answer to a request with this API key.
async fn status(service: &RateLimit<Inner, MemoryStore>, api_key: &str) -> StatusCode {
    answer_to(service, request_of(api_key)).await.status()
}

/// Returns the remaining units of this API key.
async fn left(handle: &Handle, api_key: &str) -> u64 {
    handle.peek("key", api_key).await.unwrap().remaining()
}

pub(crate) fn request_of(api_key: &str) -> Request<()> {
    Request::builder()
        .header("x-api-key", api_key)
        .body(())
        .unwrap()
}

#[tokio::test]
async fn peek_reports_what_request_gets() {
    let (service, handle) = serve(stopped_layer(per_api_key(2)));
    assert_eq!(left(&handle, "ann").await, 2);
    for _ in 0..2 {
        status(&service, "ann").await;
    }
    let status = handle.peek("key", "ann").await.unwrap();
    assert_eq!(
        (status.remaining(), status.outcome),
        (0, Outcome::Refuse(secs(30)))
    );
    assert_eq!(left(&handle, "bob").await, 2);
    let ann = Key::owned(status_scope(), "ann");
    assert_eq!(handle.peek("key", &ann).await.unwrap().remaining(), 0);
}

#[tokio::test]
async fn peek_of_request_has_all_limits_and_costs() {
    let policy = per_api_key(9)
        .limit(per_hour("all", 5).cost(4))
        .skip(|head: &RequestHead<'_>| head.method() == Method::PUT);
    let (service, handle) = serve(stopped_layer(policy));
    let peek = async |request: &Request<()>| {
        let decision = handle
            .peek_request(&RequestHead::of(request))
            .await
            .unwrap();
        decision.map(|decision| (decision.outcome(), decision.statuses().len()))
    };
    let mut request = request_of("ann");
    for _ in 0..2 {
        assert_eq!(peek(&request).await, Some((Outcome::Allow, 2)));
    }
    status(&service, "ann").await;
    let retry = secs(3 * 3_600 / 5);
    assert_eq!(peek(&request).await, Some((Outcome::Refuse(retry), 2)));
    assert_eq!(left(&handle, "ann").await, 8);
    *request.method_mut() = Method::PUT;
    assert_eq!(peek(&request).await, None);
}

#[tokio::test]
async fn early_handle_operates_finished_layer() {
    let layer = stopped_layer(per_api_key(2));
    let handle = layer.handle();
    let early = layer.layer(Inner::default());
    let layer = layer.attach_decision().max_waiting(7);
    let service = layer.layer(Inner::default());

    handle.block("key", "ann", secs(60)).unwrap();
    assert_eq!(status(&service, "ann").await, 403);
    handle.replace_policy(Policy::new().block(|_: &RequestHead<'_>| true));
    for service in [early, service] {
        assert_eq!(status(&service, "bob").await, 403);
    }
}

#[tokio::test]
async fn setting_keeps_replaced_policy() {
    let layer = stopped_layer(per_api_key(2));
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

#[test]
fn limiter_of_hold_is_an_error() {
    let policy = per_api_key(3).limit(Limit::new("streams", Quota::concurrent(2)));
    let handle = stopped_layer(policy).handle();
    let error = handle.limiter("streams").unwrap_err();
    assert!(matches!(error, HandleError::HeldUnits(limit) if limit.as_str() == "streams"));
    assert_eq!(
        error.to_string(),
        "the limit \"streams\" holds units, which a check of a limiter would not release: keep a clone of the request's \
         `Reservation`, or make a `Limiter` with a limit of its own for `Limiter::hold`"
    );
}

#[tokio::test]
async fn limiter_counts_on_the_limits_counter() {
    let leaky = Quota::per_minute(60).leaky_bucket();
    let (service, handle) = serve(stopped_layer(
        per_api_key(3).limit(
            Limit::new("turns", leaky)
                .by(key::header("x-api-key"))
                .when_missing(MissingKey::Skip)
                .max_wait(secs(5)),
        ),
    ));
    let limiter = handle.limiter("key").unwrap();
    let (head, ()) = request_of("ann").into_parts();
    let ann = handle.key("key", &head).unwrap();

    status(&service, "ann").await;
    let Ok(decision) = limiter.check(&ann).await;
    assert_eq!(decision.statuses()[0].remaining(), 1);
    // A text is a value of the limit's key.
    let Ok(decision) = limiter.check("ann").await;
    assert_eq!(decision.statuses()[0].remaining(), 0);
    assert_eq!(status(&service, "ann").await, 429);

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
    let (service, handle) = serve(stopped_layer(per_api_key(1)));
    status(&service, "ann").await;
    assert_eq!(status(&service, "ann").await, 429);
    handle.reset("key", "ann").await.unwrap();
    assert_eq!(status(&service, "ann").await, 200);
}

#[tokio::test]
async fn grant_gives_units_up_to_full() {
    let (service, handle) = serve(stopped_layer(per_api_key(3)));
    for _ in 0..3 {
        status(&service, "ann").await;
    }
    for (units, given, left) in [(2, 2, 2), (100, 1, 3), (100, 0, 3)] {
        let granted = handle.grant("key", "ann", units).await.unwrap();
        assert_eq!((granted.taken, granted.remaining()), (given, left));
    }
}

#[tokio::test]
async fn grant_counts_under_a_changed_quota() {
    let (service, handle) = serve(stopped_layer(per_api_key(2)));
    for _ in 0..2 {
        status(&service, "ann").await;
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
    let error = stopped_layer(policy_of(log))
        .handle()
        .grant("key", "ann", 1)
        .await
        .unwrap_err();
    assert!(matches!(error, HandleError::NotGranted(limit) if limit.as_str() == "key"));
}

#[tokio::test]
async fn blocked_key_beside_another_is_blocked() {
    let (service, handle) = serve(stopped_layer(per_api_key(9)));
    handle.block("key", "ann", TEN_MINUTES).unwrap();
    let answer = answer_to(&service, request_with(None, &["ann", "bob"])).await;
    assert_eq!(answer.status(), 403);
}

#[tokio::test]
async fn blocked_address_beside_header_is_blocked() {
    let by = key::header("x-api-key").or(key::client_ip());
    let (service, handle) = serve(stopped_layer(policy_of(per_minute("key", 9).by(by))));
    handle.block("key", "203.0.113.7", TEN_MINUTES).unwrap();
    for (address, status) in [([203, 0, 113, 7], 403), ([203, 0, 113, 8], 200)] {
        let answer = answer_to(&service, request_with(Some(address), &["junk"])).await;
        assert_eq!(answer.status(), status, "{address:?}");
    }
}

/// Returns a request with this client address and these API keys.
fn request_with(address: Option<[u8; 4]>, api_keys: &[&str]) -> Request<()> {
    let mut request = Request::builder();
    if let Some(address) = address {
        request = request.extension(IpAddr::from(address));
    }
    for key in api_keys {
        request = request.header("x-api-key", *key);
    }
    request.body(()).unwrap()
}

#[tokio::test]
async fn blocked_combination_with_second_header_is_blocked() {
    let by = || key::all((key::client_ip(), key::header("x-api-key")));
    let (service, handle) = serve(stopped_layer(policy_of(
        per_minute("key", 9)
            .by(by())
            .when_missing(MissingKey::ShareOneCounter),
    )));
    let (client, stranger) = (Some([203, 0, 113, 7]), Some([203, 0, 113, 8]));
    let ann = request_with(client, &["ann"]);
    handle
        .block("key", RequestHead::of(&ann), TEN_MINUTES)
        .unwrap();
    let many: Vec<String> = (0..65).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (address, keys, status) in [
        (client, &["ann"] as &[&str], 403),
        (client, &["bob", "ann"], 403),
        (client, &many, 403),
        (client, &many[..63], 200),
        (client, &["bob"], 200),
        (stranger, &["ann"], 200),
    ] {
        let answer = answer_to(&service, request_with(address, keys)).await;
        assert_eq!(answer.status(), status, "{address:?} {keys:?}");
    }
}

#[tokio::test]
async fn client_with_conflicting_keys_cannot_be_blocked() {
    let (service, handle) = serve(stopped_layer(per_api_key(9)));
    let request = request_with(None, &["ann", "bob"]);
    let error = handle
        .block("key", RequestHead::of(&request), TEN_MINUTES)
        .unwrap_err();
    assert!(matches!(error, HandleError::UnreadableKey(_)), "{error}");
    let keyless = Request::new(());
    assert_eq!(answer_to(&service, keyless).await.status(), 200);
}

#[tokio::test]
async fn blocked_everyone_leaves_clients_with_keys() {
    let by = key::header("x-api-key").or(key::everyone());
    let (service, handle) = serve(stopped_layer(policy_of(per_minute("key", 9).by(by))));
    handle.block("key", &Key::EVERYONE, TEN_MINUTES).unwrap();
    assert_eq!(answer_of(&service).await.status(), 403);
    assert_eq!(status(&service, "ann").await, 200);
}

#[tokio::test]
async fn blocked_client_gets_403_until_unblocked() {
    let (service, handle) = serve(stopped_layer(per_api_key(9)));
    handle.block("key", "ann", TEN_MINUTES).unwrap();
    assert_eq!(status(&service, "ann").await, 403);
    assert_eq!(status(&service, "bob").await, 200);
    assert!(handle.blocked_for("key", "ann").unwrap().is_some());
    assert!(handle.unblock("key", "ann").unwrap());
    assert!(!handle.unblock("key", "ann").unwrap());
    assert_eq!(status(&service, "ann").await, 200);
    handle.block("key", "ann", Duration::ZERO).unwrap();
    assert_eq!(handle.blocked_for("key", "ann").unwrap(), None);
}

#[tokio::test]
async fn unknown_limit_names_known_ones() {
    let handle = stopped_layer(per_api_key(9)).handle();
    let error = handle.peek("kye", "ann").await.unwrap_err();
    assert!(matches!(&error, HandleError::UnknownLimit { name, .. } if name == "kye"));
    assert_eq!(
        error.to_string(),
        "the policy has no limit \"kye\": its limits are key"
    );
}

#[tokio::test]
async fn replaced_policy_keeps_counters() {
    let (service, handle) = serve(stopped_layer(per_api_key(2)));
    status(&service, "ann").await;
    handle.replace_policy(per_api_key(1));
    assert_eq!(status(&service, "ann").await, 200);
    assert_eq!(status(&service, "ann").await, 429);
    handle.replace_policy(Policy::new());
    assert_eq!(status(&service, "ann").await, 200);
}

/// Asserts that alternating policies mix no decision while requests run.
///
/// Each request is answered by the policy that has read it: the limit in its fields is the one in its decision.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_policies_mix_no_decision() {
    const UNITS: [u64; 2] = [1_000_000, 2_000_000];
    let policy = |units| {
        let limit = per_hour(if units == UNITS[0] { "one" } else { "two" }, units);
        policy_of(limit.settle(tower_quota::settle::only_failures()))
    };
    let (service, handle) =
        serve(RateLimitLayer::new(slow_store(), policy(UNITS[0])).attach_decision());
    let answered = Arc::new(AtomicUsize::new(0));
    let requests = {
        let answered = Arc::clone(&answered);
        tokio::spawn(async move {
            while answered.load(Ordering::Relaxed) < 500 {
                let response = answer_of(&service).await;
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
    let queue = Limit::new("queue", quota).max_wait(secs(86_400));
    let (service, handle) = serve(stopped_layer(policy_of(queue)));
    answer_of(&service).await;
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
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "3600");
    let refused = answer_of(&service).await;
    assert_eq!(refused.status(), 429);
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
    let limit = per_minute("local", 10)
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
    let layer = RateLimitLayer::new(store, policy_of(limit));
    let mut service = layer.layer(Inner::default());
    let response = service
        .ready()
        .await
        .unwrap()
        .call(Request::new(()))
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(
        runs.each_ref().map(|runs| runs.load(Ordering::Relaxed)),
        [1; 4]
    );
}

#[tokio::test(start_paused = true)]
async fn store_timeout_falls_back() {
    let store = slow_store();
    store.set_default(ScriptedAnswer::memory().held());
    let layer = RateLimitLayer::new(store, per_api_key(1)).store_timeout(millis(50));
    let response = layer
        .layer(Inner::default())
        .oneshot(request_of("ann"))
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn addresses_are_named_by_text() {
    let policy = policy_of(per_minute("address", 9).by(key::client_ip()));
    let handle = stopped_layer(policy).handle();
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
    let (service, handle) = serve(stopped_layer(policy_of(per_minute("key", 2).by(by))));
    for request in [request_of("ann"), Request::new(())] {
        answer_to(&service, request.clone()).await;
        let (head, ()) = request.into_parts();
        assert_eq!(handle.peek("key", &head).await.unwrap().remaining(), 1);
        assert_eq!(handle.reset("key", &head).await.unwrap().remaining(), 2);
    }
}

#[tokio::test]
async fn request_without_key_names_no_client() {
    let (head, ()) = Request::new(()).into_parts();
    let error = stopped_layer(per_api_key(1))
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
    let (service, handle) = serve(stopped_layer(policy_of(Limit::new(
        "queue",
        Quota::per_second(1).burst(9).leaky_bucket(),
    ))));
    assert_eq!(handle.waiting(), 0);
    answer_of(&service).await;
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
            tokio::time::sleep(millis(10)).await;
            Some(7_u64)
        };
        Policy::new()
            .look_up(secs(1), late)
            .limit(per_minute(name, 9))
    };
    let (service, handle) = serve(stopped_layer(policy("old")));
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
    assert!(names(&answer_of(&service).await).starts_with("\"new\""));
}

#[tokio::test]
async fn window_ends_for_unused_counter_too() {
    let user = || key::header("x-api-key");
    let day = Quota::per_day(100).fixed_window();
    let policy = policy_of(Limit::new("day", day).by(user()))
        .limit(Limit::new("bucket", Quota::per_day(100)).by(user()))
        .limit(Limit::new("own", day.from_first_request()).by(user()));
    let (service, handle) = serve(stopped_layer(policy));
    status(&service, "ann").await;
    let used = handle.peek("day", "ann").await.unwrap().reset_after();
    for user in ["ann", "bob"] {
        let ends = handle.until_window_ends("day", user).await.unwrap();
        assert_eq!(ends, Some(used), "{user}");
        for limit in ["bucket", "own"] {
            assert_eq!(handle.until_window_ends(limit, user).await.unwrap(), None);
        }
    }
    assert!(handle.until_window_ends("month", "ann").await.is_err());
}
