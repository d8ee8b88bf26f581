//! Limits that flag requests, with many limits, without a store, and as shadows.

use std::time::Duration;

use http::Request;
use tower::Layer;
use tower_quota::store::Charge;
use tower_quota::{
    Check, Flagged, Limit, MemoryStore, OnStoreFailure, Over, Policy, Quota, RateLimitLayer,
    RequestHead,
};
use tower_quota_testkit::ManualClock;

use crate::fixture::{Inner, Limited, ScriptedStore, StoreControl, tokio_now};
use crate::shared::{
    answer_of, assert_field, assert_no_field, decision_of, millis, per_hour, policy_of, secs,
    stopped_layer,
};

const TARPIT: Over = Over::Delay {
    step: Duration::from_secs(1),
    most: Duration::from_secs(5),
};

fn challenge() -> Limit {
    per_hour("challenge", 1).over(Over::Flag)
}

/// Returns the names of the limits that flagged the last request.
fn flags(inner: &Inner) -> Vec<String> {
    let requests = inner.requests.lock().unwrap();
    let flagged: Option<&Flagged> = requests.last().unwrap().get();
    flagged
        .into_iter()
        .flat_map(Flagged::limits)
        .map(|limit| limit.to_string())
        .collect()
}

/// Applies the limit to requests with at least this number of tags.
fn tagged(limit: Limit, tags: usize) -> Limit {
    limit.when(move |head: &RequestHead<'_>| head.headers().get_all("x-tag").iter().count() >= tags)
}

fn request_with_tags(tags: usize) -> http::request::Builder {
    (0..tags).fold(Request::get("/"), |request, _| request.header("x-tag", ""))
}

#[tokio::test]
async fn too_many_charges_drop_no_flag() {
    let mut policy = policy_of(challenge());
    for number in 1..=20 {
        let enforced = per_hour(format!("enforced-{number}"), 100);
        let shadow = per_hour(format!("shadow-{number}"), 100).shadow();
        policy = policy.limit(tagged(enforced, number));
        policy = policy.limit(tagged(shadow, number));
    }
    let limited = Limited::new(policy);
    for expected in [&[][..], &["challenge"], &["challenge"]] {
        let response = limited.send(request_with_tags(20)).await;
        assert_eq!(response.status(), 200);
        assert_eq!(flags(&limited.inner), expected);
    }
}

#[tokio::test]
async fn too_many_flags_are_server_error() {
    let mut policy = Policy::new();
    for number in 0..=Charge::MOST {
        let flag = per_hour(format!("flag-{number}"), 1).over(Over::Flag);
        policy = policy.limit(tagged(flag, number));
    }
    let layer = RateLimitLayer::new(MemoryStore::new(), policy);
    let handle = layer.handle();
    let service = layer.layer(Inner::default());
    for (tags, expected) in [(Charge::MOST - 1, 200), (Charge::MOST, 500)] {
        let request = request_with_tags(tags).body(()).unwrap();
        let response = crate::shared::answer_to(&service, request).await;
        assert_eq!(response.status(), expected);
    }
    assert_eq!(handle.mistakes().count(Check::TooManyLimits), 1);
}

/// Sends three requests over the quota of the challenge in an outage. Returns which ones are flagged.
async fn flagged_in_outage(
    choice: Option<OnStoreFailure>,
    beside: Option<OnStoreFailure>,
) -> [bool; 3] {
    let challenge = match choice {
        Some(choice) => challenge().on_store_failure(choice),
        None => challenge(),
    };
    let mut policy = policy_of(challenge);
    if let Some(choice) = beside {
        policy = policy.limit(per_hour("hour", 100).on_store_failure(choice));
    }
    let store = ScriptedStore::new();
    store.fail(true);
    let layer = RateLimitLayer::new(store, policy).local_store(MemoryStore::new());
    let service = layer.layer(Inner::default());
    let mut flagged = [false; 3];
    for flagged in &mut flagged {
        let response = answer_of(&service).await;
        assert_eq!(response.status(), 200);
        *flagged = !flags(service.get_ref()).is_empty();
    }
    flagged
}

#[tokio::test]
async fn flag_in_outage_follows_choice() {
    use OnStoreFailure::{Allow, Local, Refuse};
    for beside in [None, Some(Allow), Some(Local)] {
        for (choice, expected) in [
            (None, [false; 3]),
            (Some(Refuse), [true; 3]),
            (Some(Local), [false, true, true]),
        ] {
            let flagged = flagged_in_outage(choice, beside).await;
            assert_eq!(flagged, expected, "{choice:?} beside {beside:?}");
        }
    }
}

#[tokio::test]
async fn counted_flag_in_outage_shows_in_no_field() {
    let policy = policy_of(challenge().on_store_failure(OnStoreFailure::Local));
    let store = ScriptedStore::new();
    store.fail(true);
    let service = RateLimitLayer::new(store, policy).layer(Inner::default());
    for _ in 0..2 {
        assert!(answer_of(&service).await.headers().is_empty());
    }
}

#[tokio::test]
async fn shadow_of_flag_flags_nothing() {
    let limited = Limited::with(
        policy_of(challenge().shadow()),
        RateLimitLayer::shadow_header,
    );
    assert_no_field(&limited.get().await, "x-ratelimit-shadow");
    let response = limited.get().await;
    assert!(flags(&limited.inner).is_empty());
    assert_field(&response, "x-ratelimit-shadow", r#""challenge";flag"#);
    let would_refuse = decision_of(&response).would_refuse();
    assert_eq!(would_refuse.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn shadow_of_delay_delays_nothing() {
    let limit = per_hour("tarpit", 1).over(TARPIT).shadow();
    let limited = Limited::with(policy_of(limit), RateLimitLayer::shadow_header);
    assert_no_field(&limited.get().await, "x-ratelimit-shadow");
    let began = tokio_now();
    let response = limited.get().await;
    assert_eq!(tokio_now(), began);
    assert_field(&response, "x-ratelimit-shadow", r#""tarpit";wait"#);
    let status = &decision_of(&response).statuses()[0];
    assert_eq!(status.outcome, tower_quota::Outcome::Wait(secs(1)));
}

#[tokio::test]
async fn shadow_of_delay_is_reported_without_observers() {
    let limit = per_hour("tarpit", 1).over(TARPIT).shadow();
    let service = stopped_layer(policy_of(limit))
        .shadow_header()
        .layer(Inner::default());
    answer_of(&service).await;
    let response = answer_of(&service).await;
    assert_field(&response, "x-ratelimit-shadow", r#""tarpit";wait"#);
}

#[tokio::test(start_paused = true)]
async fn shadows_of_soft_limits_change_nothing() {
    let queue =
        Limit::new("queue", Quota::per_hour(1).leaky_bucket().queue(9)).max_wait(secs(3_600));
    let tarpit = per_hour("tarpit", 1).over(TARPIT);
    let live = [challenge(), tarpit, queue]
        .map(Limit::shadow)
        .into_iter()
        .fold(policy_of(per_hour("hour", 9)), Policy::limit);
    let limited = Limited::with(live, RateLimitLayer::shadow_header);
    limited.get().await;
    let began = tokio_now();
    let response = limited.get().await;
    assert_eq!(response.status(), 200);
    assert!(tokio_now() - began < millis(1));
    assert!(flags(&limited.inner).is_empty());
    let shadows = r#""challenge";flag, "tarpit";wait, "queue";wait"#;
    assert_field(&response, "x-ratelimit-shadow", shadows);
}

#[tokio::test]
async fn shadow_of_flag_in_outage_flags_nothing() {
    let shadow = challenge()
        .on_store_failure(OnStoreFailure::Refuse)
        .shadow();
    let live = policy_of(per_hour("hour", 9)).limit(shadow);
    let store = ScriptedStore::with_clock(ManualClock::default());
    store.fail(true);
    let service = RateLimitLayer::new(store, live).layer(Inner::default());
    assert_eq!(answer_of(&service).await.status(), 200);
    assert!(flags(service.get_ref()).is_empty());
}
