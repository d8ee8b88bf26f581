//! Every header field, on admitted and refused requests.

use std::time::Duration;

use http::{Method, Request, StatusCode};
use tower::{Layer, ServiceExt};
use tower_quota::{
    EXPOSED_HEADERS, Left, Limit, LimitStatus, MissingKey, Name, Outcome, Penalty, Policy, Quota, RateLimitLayer, key,
};
use tower_quota_testkit::ScriptedAnswer;

use crate::fixture::{Answer, Inner, Limited, ScriptedStore, WITH_X, field, retry_after};

/// The fields that a layer writes unless told otherwise, and those that are asked for here.
const FIELDS: [&str; 6] =
    ["retry-after", "ratelimit", "ratelimit-policy", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];

/// A policy whose clients are told in both.
fn limited(policy: Policy) -> Limited {
    Limited::with(policy, |layer| layer.headers(WITH_X))
}

/// These fields, where there are no others that browsers would have to be shown.
fn rate_limit_fields(response: &Answer) -> [Option<String>; 6] {
    let others = EXPOSED_HEADERS.into_iter().filter(|name| !FIELDS.contains(&name.as_str()));
    assert_eq!(others.filter(|name| response.headers().contains_key(name)).count(), 0);
    FIELDS.map(|name| field(response, name))
}

fn told(fields: [Option<&str>; 6]) -> [Option<String>; 6] {
    fields.map(|value| value.map(str::to_owned))
}

/// The response of a limit named `one` that stands as a store says.
async fn told_by_store(standing: LimitStatus) -> Answer {
    let policy = Policy::new().limit(Limit::new("one", Quota::per_hour(1)));
    let store = ScriptedStore::new();
    store.push(ScriptedAnswer::statuses([standing]));
    let service = RateLimitLayer::new(store, policy).headers(WITH_X).layer(Inner::default());
    service.oneshot(Request::new(())).await.unwrap()
}

#[tokio::test]
async fn an_admitted_request_is_told_what_is_left() {
    let limited = limited(Policy::new().limit(Limit::new("burst", Quota::per_second(10).burst(20))));
    let response = limited.get().await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(
        rate_limit_fields(&response),
        told([None, Some(r#""burst";r=19;t=1"#), Some(r#""burst";q=20;w=2"#), Some("20"), Some("19"), Some("1")])
    );
}

#[tokio::test]
async fn several_limits_are_listed_in_order_and_the_binding_one_is_in_the_x_fields() {
    let policy = Policy::new()
        .limit(Limit::new("hour", Quota::per_hour(1_000)))
        .limit(Limit::new("minute", Quota::per_minute(2)));
    let response = limited(policy).get().await;
    assert_eq!(
        rate_limit_fields(&response),
        told([
            None,
            Some(r#""hour";r=999;t=4, "minute";r=1;t=30"#),
            Some(r#""hour";q=1000;w=3600, "minute";q=2;w=60"#),
            Some("2"),
            Some("1"),
            Some("30"),
        ])
    );
}

#[tokio::test]
async fn a_refusal_lists_only_the_limits_that_refuse_and_keeps_its_promise() {
    let policy = Policy::new()
        .limit(Limit::new("second", Quota::per_second(3)))
        .limit(Limit::new("ten", Quota::new(3, Duration::from_secs(10))))
        .limit(Limit::new("hour", Quota::per_hour(1_000)));
    let limited = limited(policy);
    for _ in 0..3 {
        assert_eq!(limited.get().await.status(), StatusCode::OK);
    }
    let refused = limited.get().await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(
        rate_limit_fields(&refused),
        told([
            Some("4"),
            Some(r#""second";r=0;t=1, "ten";r=0;t=4"#),
            Some(r#""second";q=3;w=1, "ten";q=3;w=10, "hour";q=1000;w=3600"#),
            Some("3"),
            Some("0"),
            Some("10"),
        ])
    );

    limited.clock.advance(retry_after(&refused));
    assert_eq!(limited.get().await.status(), StatusCode::OK);
    assert_eq!(limited.inner.calls(), 4);
}

#[tokio::test]
async fn retry_after_is_never_zero() {
    let limited = limited(Policy::new().limit(Limit::new("fast", Quota::per_second(1_000).burst(1))));
    limited.get().await;
    let refused = limited.get().await;
    assert_eq!(field(&refused, "retry-after").as_deref(), Some("1"));
    assert_eq!(field(&refused, "ratelimit-policy").as_deref(), Some(r#""fast";q=1;w=1"#));
}

#[tokio::test]
async fn retry_after_is_not_zero_even_if_a_store_says_so() {
    let response = told_by_store(LimitStatus {
        name: Name::new("one"),
        limit: 1,
        left: Left::new(0, Duration::ZERO),
        outcome: Outcome::Refuse(Duration::ZERO),
        taken: 0,
        is_shadow: false,
    })
    .await;
    assert_eq!(field(&response, "retry-after").as_deref(), Some("1"));
}

#[tokio::test]
async fn what_can_never_fit_has_no_time_to_retry() {
    let policy = Policy::new()
        .limit(Limit::new("units", Quota::per_minute(10)).cost_with(|_| 11))
        .limit(Limit::new("requests", Quota::per_minute(100)));
    let response = limited(policy).get().await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(
        rate_limit_fields(&response),
        told([
            None,
            Some(r#""units";r=10"#),
            Some(r#""units";q=10;w=60, "requests";q=100;w=60"#),
            Some("10"),
            Some("10"),
            Some("0"),
        ])
    );
}

#[tokio::test]
async fn only_limits_that_apply_are_told_of() {
    let policy = Policy::new()
        .limit(Limit::new("all", Quota::per_minute(60)))
        .limit(Limit::new("posts", Quota::per_minute(6)).when(|head| head.method() == Method::POST))
        .limit(Limit::new("puts", Quota::per_minute(6)).when(|head| head.method() == Method::PUT));
    let limited = limited(policy);
    let response = limited.send(Request::post("/")).await;
    assert_eq!(field(&response, "ratelimit").as_deref(), Some(r#""all";r=59;t=1, "posts";r=5;t=10"#));
    assert_eq!(field(&response, "ratelimit-policy").as_deref(), Some(r#""all";q=60;w=60, "posts";q=6;w=60"#));

    let response = limited.get().await;
    assert_eq!(field(&response, "ratelimit").as_deref(), Some(r#""all";r=58;t=2"#));
}

#[tokio::test]
async fn requests_without_limits_are_told_nothing() {
    let response = limited(Policy::new()).get().await;
    assert_eq!(rate_limit_fields(&response), told([None; 6]));
}

#[tokio::test]
async fn names_are_escaped() {
    let response = limited(Policy::new().limit(Limit::new(r#"a "b" \c"#, Quota::per_second(1)))).get().await;
    assert_eq!(field(&response, "ratelimit").as_deref(), Some(r#""a \"b\" \\c";r=0;t=1"#));
    assert_eq!(field(&response, "ratelimit-policy").as_deref(), Some(r#""a \"b\" \\c";q=1;w=1"#));
}

#[tokio::test]
async fn numbers_are_cut_to_what_structured_fields_hold() {
    let response = told_by_store(LimitStatus {
        name: Name::new("one"),
        limit: u64::MAX,
        left: Left::new(1_000_000_000_000_000, Duration::MAX),
        outcome: Outcome::Allow,
        taken: 0,
        is_shadow: false,
    })
    .await;
    assert_eq!(field(&response, "ratelimit").as_deref(), Some(r#""one";r=999999999999999;t=999999999999999"#));
    for name in ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"] {
        assert_eq!(field(&response, name).as_deref(), Some("999999999999999"));
    }
}

#[tokio::test]
async fn a_microsecond_is_a_second_on_the_wire() {
    for (micros, seconds) in [(1, "1"), (1_000_000, "1"), (1_000_001, "2"), (59_999_999, "60")] {
        let retry = Duration::from_micros(micros);
        let response = told_by_store(LimitStatus {
            name: Name::new("one"),
            limit: 1,
            left: Left::new(0, retry),
            outcome: Outcome::Refuse(retry),
            taken: 0,
            is_shadow: false,
        })
        .await;
        assert_eq!(field(&response, "retry-after").as_deref(), Some(seconds));
        assert_eq!(field(&response, "x-ratelimit-reset").as_deref(), Some(seconds));
        assert_eq!(field(&response, "ratelimit"), Some(format!(r#""one";r=0;t={seconds}"#)));
    }
}

#[tokio::test]
async fn a_peek_is_told_the_whole_quota() {
    let policy = Policy::new().limit(Limit::new("peek", Quota::per_minute(5)).cost(0).by(key::everyone()));
    let limited = limited(policy);
    for _ in 0..3 {
        assert_eq!(field(&limited.get().await, "ratelimit").as_deref(), Some(r#""peek";r=5;t=0"#));
    }
}

#[tokio::test]
async fn the_decision_is_in_the_request_and_in_every_response() {
    let limited = limited(Policy::new().limit(Limit::new("one", Quota::per_minute(1))));
    let admitted = limited.get().await;
    let decision = admitted.extensions().get::<tower_quota::Decision>().unwrap();
    assert!(decision.is_allowed());
    assert_eq!(limited.inner.last_seen().as_ref().unwrap().statuses(), decision.statuses());

    let refused = limited.get().await;
    let decision = refused.extensions().get::<tower_quota::Decision>().unwrap();
    assert_eq!(decision.retry_after(), Some(Duration::from_secs(60)));
}

#[tokio::test]
async fn shadows_are_told_in_no_header_and_refuse_nobody() {
    let keyed = Limit::new("keyed", Quota::per_hour(1)).by(key::header("x-api-key"));
    let policy = Policy::new()
        .limit(Limit::new("real", Quota::per_minute(2)))
        .limit(Limit::new("dry", Quota::per_hour(1).fixed_window()).shadow())
        .limit(keyed.when_missing(MissingKey::Refuse).shadow());
    let limited = limited(policy);
    for (left, would_refuse) in [(1, 0), (0, 1)] {
        let response = limited.get().await;
        assert_eq!(response.status(), StatusCode::OK);
        let reset = (2 - left) * 30;
        assert_eq!(field(&response, "ratelimit"), Some(format!(r#""real";r={left};t={reset}"#)));
        assert_eq!(field(&response, "ratelimit-policy").as_deref(), Some(r#""real";q=2;w=60"#));
        assert_eq!(field(&response, "x-ratelimit-limit").as_deref(), Some("2"));
        let decision = response.extensions().get::<tower_quota::Decision>().unwrap();
        assert_eq!(decision.would_refuse().filter(|standing| standing.name.as_str() == "dry").count(), would_refuse);
    }
    let refused = limited.get().await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(&refused, "retry-after").as_deref(), Some("30"));
    assert_eq!(field(&refused, "ratelimit").as_deref(), Some(r#""real";r=0;t=30"#));
    assert_eq!(refused.extensions().get::<tower_quota::Decision>().unwrap().would_refuse().count(), 1);
}

#[tokio::test]
async fn a_batch_takes_what_is_left() {
    let policy = Policy::new()
        .limit(Limit::new("rows", Quota::per_minute(60)).at_most().cost(100))
        .limit(Limit::new("requests", Quota::per_minute(10)));
    let limited = limited(policy);
    let response = limited.get().await;
    let decision = response.extensions().get::<tower_quota::Decision>().unwrap();
    assert_eq!(decision.statuses().iter().map(|standing| standing.taken).collect::<Vec<_>>(), [60, 1]);
    let refused = limited.get().await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(&refused, "retry-after").as_deref(), Some("1"));
}

#[tokio::test]
async fn a_penalty_shows_only_while_it_blocks_and_under_its_limits_name() {
    let penalty = Penalty::after(2).step(Duration::from_secs(100)).most(Duration::from_secs(250));
    let limited = limited(Policy::new().limit(Limit::new("one", Quota::per_minute(1)).penalty(penalty)));
    assert_eq!(field(&limited.get().await, "ratelimit").as_deref(), Some(r#""one";r=0;t=60"#));
    // Two refusals are free, then each adds a step, up to two.
    for seconds in [60, 60, 100, 200, 200] {
        let refused = limited.get().await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(field(&refused, "retry-after"), Some(seconds.to_string()));
        assert_eq!(field(&refused, "ratelimit"), Some(format!(r#""one";r=0;t={seconds}"#)));
        assert_eq!(field(&refused, "ratelimit-policy").as_deref(), Some(r#""one";q=1;w=60"#));
        assert_eq!(field(&refused, "x-ratelimit-limit").as_deref(), Some("1"));
        assert_eq!(field(&refused, "x-ratelimit-reset"), Some(seconds.to_string()));
    }
    limited.clock.advance(Duration::from_secs(200));
    assert_eq!(limited.get().await.status(), StatusCode::OK);
}

#[test]
fn the_strikes_of_a_limit_are_not_another_limit() {
    let one = Limit::new("one", Quota::per_minute(1)).penalty(Penalty::after(2));
    let other = Limit::new("one penalty", Quota::per_minute(1));
    let error = Policy::new().limit(one).try_limit(other).unwrap_err();
    assert!(matches!(error, tower_quota::ConfigError::CollidingNames(..)), "{error}");
}
