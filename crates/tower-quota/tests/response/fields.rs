//! Every header field, on admitted and refused requests.

use std::time::Duration;

use http::{Method, Request};
use tower::Layer;
use tower_quota::{
    Limit, LimitStatus, MissingKey, Name, Outcome, Penalty, Policy, Quota, RateLimitLayer, key,
    store::Left,
};
use tower_quota_testkit::{ScriptedAnswer, ScriptedStore};

use crate::shared::{
    Answer, Inner, Limited, WITH_X, answer_of, assert_field, decision_of, field, per_hour,
    per_minute, per_second, policy_of, retry_after, secs,
};

/// The fields of the styles in these tests.
const FIELDS: [&str; 6] = [
    "retry-after",
    "ratelimit",
    "ratelimit-policy",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
];

/// Returns a policy with both styles.
fn limited(policy: Policy) -> Limited {
    Limited::with(policy, |layer| layer.headers(WITH_X))
}

/// Asserts these fields, and that there are no other rate limit fields. A missing field is an empty text.
#[track_caller]
fn assert_fields(response: &Answer, expected: [&str; 6]) {
    let names = response.headers().keys().map(|name| name.as_str());
    let mut others = names.filter(|name| name.contains("ratelimit") && !FIELDS.contains(name));
    assert_eq!(others.next(), None);
    let fields = FIELDS.map(|name| field(response, name));
    let expected = expected.map(|value| (!value.is_empty()).then(|| value.to_owned()));
    assert_eq!(fields, expected);
}

/// Returns the response for a limit named `one` with this status from the store.
async fn status_response(status: LimitStatus) -> Answer {
    let policy = policy_of(per_hour("one", 1));
    let store = ScriptedStore::new();
    store.push(ScriptedAnswer::statuses([status]));
    let service = RateLimitLayer::new(store, policy)
        .headers(WITH_X)
        .layer(Inner::default());
    answer_of(&service).await
}

#[tokio::test]
async fn admitted_request_sees_what_is_left() {
    let limited = limited(policy_of(Limit::new(
        "burst",
        Quota::per_second(10).burst(20),
    )));
    let response = limited.get().await;
    assert_eq!(response.status(), 200);
    assert_fields(
        &response,
        [
            "",
            r#""burst";r=19;t=2"#,
            r#""burst";q=20;w=2"#,
            "20",
            "19",
            "1",
        ],
    );
}

#[tokio::test]
async fn x_fields_report_the_tightest_limit() {
    let policy = policy_of(per_hour("hour", 1_000)).limit(per_minute("minute", 2));
    let response = limited(policy).get().await;
    assert_fields(
        &response,
        [
            "",
            r#""hour";r=999;t=3597, "minute";r=1;t=30"#,
            r#""hour";q=1000;w=3600, "minute";q=2;w=60"#,
            "2",
            "1",
            "30",
        ],
    );
}

#[tokio::test]
async fn refusal_lists_refusing_limits_and_retry_succeeds() {
    let policy = policy_of(per_second("second", 3))
        .limit(Limit::new("ten", Quota::new(3, secs(10))))
        .limit(per_hour("hour", 1_000));
    let limited = limited(policy);
    for _ in 0..3 {
        assert_eq!(limited.get().await.status(), 200);
    }
    let refused = limited.get().await;
    assert_eq!(refused.status(), 429);
    assert_fields(
        &refused,
        [
            "4",
            r#""second";r=0;t=1, "ten";r=0;t=4"#,
            r#""second";q=3;w=1, "ten";q=3;w=10, "hour";q=1000;w=3600"#,
            "3",
            "0",
            "10",
        ],
    );

    limited.clock.advance(retry_after(&refused));
    assert_eq!(limited.get().await.status(), 200);
    assert_eq!(limited.inner.calls(), 4);
}

#[tokio::test]
async fn retry_after_below_a_second_is_one() {
    let limited = limited(policy_of(Limit::new(
        "fast",
        Quota::per_second(1_000).burst(1),
    )));
    limited.get().await;
    let refused = limited.get().await;
    assert_field(&refused, "retry-after", "1");
    assert_field(&refused, "ratelimit-policy", r#""fast";q=1;w=1"#);
}

#[tokio::test]
async fn zero_wait_retry_after_is_one() {
    let response = status_response(LimitStatus {
        name: Name::new("one"),
        limit: 1,
        left: Left::new(0, Duration::ZERO),
        outcome: Outcome::Refuse(Duration::ZERO),
        taken: 0,
        is_shadow: false,
    })
    .await;
    assert_field(&response, "retry-after", "1");
}

#[tokio::test]
async fn cost_above_capacity_has_no_retry_time() {
    let policy =
        policy_of(per_minute("units", 10).cost_with(|_| 11)).limit(per_minute("requests", 100));
    let response = limited(policy).get().await;
    assert_eq!(response.status(), 400);
    assert_fields(
        &response,
        [
            "",
            r#""units";r=10"#,
            r#""units";q=10;w=60, "requests";q=100;w=60"#,
            "10",
            "10",
            "0",
        ],
    );
}

#[tokio::test]
async fn only_applying_limits_are_reported() {
    let policy = policy_of(per_minute("all", 60))
        .limit(per_minute("posts", 6).when(|head| head.method() == Method::POST))
        .limit(per_minute("puts", 6).when(|head| head.method() == Method::PUT));
    let limited = limited(policy);
    let response = limited.send(Request::post("/")).await;
    assert_field(
        &response,
        "ratelimit",
        r#""all";r=59;t=59, "posts";r=5;t=50"#,
    );
    assert_field(
        &response,
        "ratelimit-policy",
        r#""all";q=60;w=60, "posts";q=6;w=60"#,
    );

    let response = limited.get().await;
    assert_field(&response, "ratelimit", r#""all";r=58;t=58"#);
}

#[tokio::test]
async fn response_without_limits_has_no_fields() {
    let response = limited(Policy::new()).get().await;
    assert_fields(&response, [""; 6]);
}

#[tokio::test]
async fn limit_names_are_escaped() {
    let response = limited(policy_of(per_second(r#"a "b" \c"#, 1))).get().await;
    assert_field(&response, "ratelimit", r#""a \"b\" \\c";r=0;t=1"#);
    assert_field(&response, "ratelimit-policy", r#""a \"b\" \\c";q=1;w=1"#);
}

#[tokio::test]
async fn numbers_are_cut_to_fifteen_digits() {
    let response = status_response(LimitStatus {
        name: Name::new("one"),
        limit: u64::MAX,
        left: Left::new(1_000_000_000_000_000, Duration::MAX),
        outcome: Outcome::Allow,
        taken: 0,
        is_shadow: false,
    })
    .await;
    // No status says a time of more digits.
    assert_field(
        &response,
        "ratelimit",
        r#""one";r=999999999999999;t=18446744073710"#,
    );
    for name in ["x-ratelimit-limit", "x-ratelimit-remaining"] {
        assert_field(&response, name, "999999999999999");
    }
}

#[tokio::test]
async fn retry_seconds_are_rounded_up() {
    for (micros, seconds) in [
        (1, "1"),
        (1_000_000, "1"),
        (1_000_001, "2"),
        (59_999_999, "60"),
    ] {
        let retry = Duration::from_micros(micros);
        let response = status_response(LimitStatus {
            name: Name::new("one"),
            limit: 1,
            left: Left::new(0, retry),
            outcome: Outcome::Refuse(retry),
            taken: 0,
            is_shadow: false,
        })
        .await;
        assert_field(&response, "retry-after", seconds);
        assert_field(&response, "x-ratelimit-reset", seconds);
        assert_field(&response, "ratelimit", format!(r#""one";r=0;t={seconds}"#));
    }
}

#[tokio::test]
async fn peek_sees_the_full_quota() {
    let policy = policy_of(per_minute("peek", 5).cost(0).by(key::everyone()));
    let limited = limited(policy);
    for _ in 0..3 {
        assert_field(&limited.get().await, "ratelimit", r#""peek";r=5;t=60"#);
    }
}

#[tokio::test]
async fn every_response_carries_the_decision() {
    let limited = limited(policy_of(per_minute("one", 1)));
    let admitted = limited.get().await;
    let decision = decision_of(&admitted);
    assert!(decision.is_allowed());
    assert_eq!(decision.statuses().len(), 1);

    let refused = limited.get().await;
    let decision = decision_of(&refused);
    assert_eq!(decision.retry_after(), Some(secs(60)));
}

#[tokio::test]
async fn shadow_limits_are_in_no_field() {
    let keyed = per_hour("keyed", 1).by(key::header("x-api-key"));
    let policy = policy_of(per_minute("real", 2))
        .limit(Limit::new("dry", Quota::per_hour(1).fixed_window()).shadow())
        .limit(keyed.when_missing(MissingKey::Refuse).shadow());
    let limited = limited(policy);
    for (left, would_refuse) in [(1, 0), (0, 1)] {
        let response = limited.get().await;
        assert_eq!(response.status(), 200);
        assert_field(&response, "ratelimit", format!(r#""real";r={left};t=30"#));
        assert_field(&response, "ratelimit-policy", r#""real";q=2;w=60"#);
        assert_field(&response, "x-ratelimit-limit", "2");
        let decision = decision_of(&response);
        assert_eq!(
            decision
                .would_refuse()
                .filter(|status| status.name.as_str() == "dry")
                .count(),
            would_refuse
        );
    }
    let refused = limited.get().await;
    assert_eq!(refused.status(), 429);
    assert_field(&refused, "retry-after", "30");
    assert_field(&refused, "ratelimit", r#""real";r=0;t=30"#);
    assert_eq!(decision_of(&refused).would_refuse().count(), 1);
}

#[tokio::test]
async fn batch_takes_what_is_left() {
    let policy =
        policy_of(per_minute("rows", 60).at_most().cost(100)).limit(per_minute("requests", 10));
    let limited = limited(policy);
    let response = limited.get().await;
    let decision = decision_of(&response);
    assert_eq!(
        decision
            .statuses()
            .iter()
            .map(|status| status.taken)
            .collect::<Vec<_>>(),
        [60, 1]
    );
    let refused = limited.get().await;
    assert_eq!(refused.status(), 429);
    assert_field(&refused, "retry-after", "1");
}

#[tokio::test]
async fn penalty_shows_under_its_limits_name() {
    let penalty = Penalty::after(2).step(secs(100)).most(secs(250));
    let limited = limited(policy_of(per_minute("one", 1).penalty(penalty)));
    assert_field(&limited.get().await, "ratelimit", r#""one";r=0;t=60"#);
    // The first two refusals add nothing, then each adds a step, up to two steps.
    for seconds in [60, 60, 100, 200, 200] {
        let refused = limited.get().await;
        assert_eq!(refused.status(), 429);
        assert_eq!(field(&refused, "retry-after"), Some(seconds.to_string()));
        assert_field(&refused, "ratelimit", format!(r#""one";r=0;t={seconds}"#));
        assert_field(&refused, "ratelimit-policy", r#""one";q=1;w=60"#);
        assert_field(&refused, "x-ratelimit-limit", "1");
        assert_eq!(
            field(&refused, "x-ratelimit-reset"),
            Some(seconds.to_string())
        );
    }
    limited.clock.advance(secs(200));
    assert_eq!(limited.get().await.status(), 200);
}

/// Returns the field `RateLimit` of a limit with this quota after these requests.
async fn windows(quota: Quota, requests: usize) -> String {
    let limited = Limited::new(policy_of(Limit::new("one", quota)));
    for _ in 1..requests {
        limited.get().await;
    }
    field(&limited.get().await, "ratelimit").unwrap()
}

#[tokio::test]
async fn window_without_units_ends_with_the_next() {
    for (quota, field) in [
        // An emptied bucket of 10 an hour has its next unit after six minutes.
        (Quota::per_hour(10), "360"),
        (Quota::per_hour(10).gcra(), "360"),
        (Quota::per_second(3).burst(10), "1"),
        // A log gives units back after an hour.
        (Quota::per_hour(10).sliding_log(), "3600"),
    ] {
        assert_eq!(
            windows(quota, 10).await,
            format!("\"one\";r=0;t={field}"),
            "{quota:?}"
        );
    }
    let quota = Quota::per_hour(10);
    for (quota, most) in [
        (quota.fixed_window(), 3_600),
        // The tenth unit comes back in the next window.
        (quota.sliding_window(), 3_960),
    ] {
        let response = windows(quota, 10).await;
        let seconds = response.strip_prefix("\"one\";r=0;t=").unwrap();
        let seconds: u64 = seconds.parse().unwrap();
        assert!((1..=most).contains(&seconds), "{seconds}");
    }
}

#[tokio::test]
async fn window_spreads_remaining_units_at_the_rate() {
    for (quota, requests, field) in [
        (Quota::per_day(10_000), 1, "\"one\";r=9999;t=86392"),
        (Quota::per_minute(60), 30, "\"one\";r=30;t=30"),
        // The bucket may be full earlier or later.
        (Quota::per_minute(60), 10, "\"one\";r=50;t=50"),
        (Quota::per_minute(60), 50, "\"one\";r=10;t=10"),
        (Quota::per_second(10).burst(100), 1, "\"one\";r=99;t=10"),
    ] {
        assert_eq!(windows(quota, requests).await, field, "{quota:?}");
    }
}

#[tokio::test]
async fn client_that_spreads_units_is_admitted() {
    for quota in [
        Quota::per_minute(7),
        Quota::per_second(3).burst(20),
        Quota::per_hour(50).sliding_log(),
    ] {
        let limited = Limited::new(policy_of(Limit::new("one", quota)));
        for _ in 0..200 {
            let response = limited.get().await;
            assert_eq!(response.status(), 200, "{quota:?}");
            let left = field(&response, "ratelimit").unwrap();
            let (units, seconds) = left
                .strip_prefix("\"one\";r=")
                .unwrap()
                .split_once(";t=")
                .unwrap();
            let (units, seconds): (u32, u64) = (units.parse().unwrap(), seconds.parse().unwrap());
            limited.clock.advance(secs(seconds) / units.max(1));
        }
    }
}

#[tokio::test]
async fn unit_of_limit_is_in_its_policy() {
    let bytes = per_minute("bytes", 1_000).unit("content-bytes");
    let requests = per_minute("requests", 10).unit("requests");
    let limited = limited(policy_of(bytes).limit(requests));
    let policies = r#""bytes";q=1000;qu="content-bytes";w=60, "requests";q=10;w=60"#;
    assert_field(&limited.get().await, "ratelimit-policy", policies);
}

#[test]
fn unit_that_fits_no_header_is_refused() {
    let limit = per_minute("bytes", 1_000).unit("öctets");
    assert!(matches!(
        Policy::new().try_limit(limit),
        Err(tower_quota::ConfigError::LimitName(_))
    ));
}

#[test]
fn strikes_collide_with_no_other_limit() {
    let one = per_minute("one", 1).penalty(Penalty::after(2));
    let other = per_minute("one penalty", 1);
    let error = policy_of(one).try_limit(other).unwrap_err();
    assert!(
        matches!(error, tower_quota::ConfigError::CollidingNames(..)),
        "{error}"
    );
}
