//! Every header field, on admitted and refused requests.

use std::time::Duration;

use http::{Method, Request, StatusCode};
use tower::{Layer, ServiceExt};
use tower_quota::{
    Limit, LimitStatus, MissingKey, Name, Outcome, Penalty, Policy, Quota, RateLimitLayer, key,
    store::Left,
};
use tower_quota_testkit::{ScriptedAnswer, ScriptedStore};

use crate::shared::{Answer, Inner, Limited, WITH_X, field, retry_after};

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

/// Returns these fields, and asserts that there are no other rate limit fields.
fn rate_limit_fields(response: &Answer) -> [Option<String>; 6] {
    let names = response.headers().keys().map(|name| name.as_str());
    let mut others = names.filter(|name| name.contains("ratelimit") && !FIELDS.contains(name));
    assert_eq!(others.next(), None);
    FIELDS.map(|name| field(response, name))
}

fn some(fields: [Option<&str>; 6]) -> [Option<String>; 6] {
    fields.map(|value| value.map(str::to_owned))
}

/// Returns the response for a limit named `one` with this status from the store.
async fn status_response(status: LimitStatus) -> Answer {
    let policy = Policy::new().limit(Limit::new("one", Quota::per_hour(1)));
    let store = ScriptedStore::new();
    store.push(ScriptedAnswer::statuses([status]));
    let service = RateLimitLayer::new(store, policy)
        .headers(WITH_X)
        .layer(Inner::default());
    service.oneshot(Request::new(())).await.unwrap()
}

#[tokio::test]
async fn admitted_request_sees_what_is_left() {
    let limited =
        limited(Policy::new().limit(Limit::new("burst", Quota::per_second(10).burst(20))));
    let response = limited.get().await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(
        rate_limit_fields(&response),
        some([
            None,
            Some(r#""burst";r=19;t=2"#),
            Some(r#""burst";q=20;w=2"#),
            Some("20"),
            Some("19"),
            Some("1")
        ])
    );
}

#[tokio::test]
async fn x_fields_report_the_tightest_limit() {
    let policy = Policy::new()
        .limit(Limit::new("hour", Quota::per_hour(1_000)))
        .limit(Limit::new("minute", Quota::per_minute(2)));
    let response = limited(policy).get().await;
    assert_eq!(
        rate_limit_fields(&response),
        some([
            None,
            Some(r#""hour";r=999;t=3597, "minute";r=1;t=30"#),
            Some(r#""hour";q=1000;w=3600, "minute";q=2;w=60"#),
            Some("2"),
            Some("1"),
            Some("30"),
        ])
    );
}

#[tokio::test]
async fn refusal_lists_refusing_limits_and_retry_succeeds() {
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
        some([
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
async fn retry_after_below_a_second_is_one() {
    let limited =
        limited(Policy::new().limit(Limit::new("fast", Quota::per_second(1_000).burst(1))));
    limited.get().await;
    let refused = limited.get().await;
    assert_eq!(field(&refused, "retry-after").as_deref(), Some("1"));
    assert_eq!(
        field(&refused, "ratelimit-policy").as_deref(),
        Some(r#""fast";q=1;w=1"#)
    );
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
    assert_eq!(field(&response, "retry-after").as_deref(), Some("1"));
}

#[tokio::test]
async fn cost_above_capacity_has_no_retry_time() {
    let policy = Policy::new()
        .limit(Limit::new("units", Quota::per_minute(10)).cost_with(|_| 11))
        .limit(Limit::new("requests", Quota::per_minute(100)));
    let response = limited(policy).get().await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(
        rate_limit_fields(&response),
        some([
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
async fn only_applying_limits_are_reported() {
    let policy = Policy::new()
        .limit(Limit::new("all", Quota::per_minute(60)))
        .limit(Limit::new("posts", Quota::per_minute(6)).when(|head| head.method() == Method::POST))
        .limit(Limit::new("puts", Quota::per_minute(6)).when(|head| head.method() == Method::PUT));
    let limited = limited(policy);
    let response = limited.send(Request::post("/")).await;
    assert_eq!(
        field(&response, "ratelimit").as_deref(),
        Some(r#""all";r=59;t=59, "posts";r=5;t=50"#)
    );
    assert_eq!(
        field(&response, "ratelimit-policy").as_deref(),
        Some(r#""all";q=60;w=60, "posts";q=6;w=60"#)
    );

    let response = limited.get().await;
    assert_eq!(
        field(&response, "ratelimit").as_deref(),
        Some(r#""all";r=58;t=58"#)
    );
}

#[tokio::test]
async fn response_without_limits_has_no_fields() {
    let response = limited(Policy::new()).get().await;
    assert_eq!(rate_limit_fields(&response), some([None; 6]));
}

#[tokio::test]
async fn limit_names_are_escaped() {
    let response = limited(Policy::new().limit(Limit::new(r#"a "b" \c"#, Quota::per_second(1))))
        .get()
        .await;
    assert_eq!(
        field(&response, "ratelimit").as_deref(),
        Some(r#""a \"b\" \\c";r=0;t=1"#)
    );
    assert_eq!(
        field(&response, "ratelimit-policy").as_deref(),
        Some(r#""a \"b\" \\c";q=1;w=1"#)
    );
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
    assert_eq!(
        field(&response, "ratelimit").as_deref(),
        Some(r#""one";r=999999999999999;t=18446744073710"#)
    );
    for name in ["x-ratelimit-limit", "x-ratelimit-remaining"] {
        assert_eq!(field(&response, name).as_deref(), Some("999999999999999"));
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
        assert_eq!(field(&response, "retry-after").as_deref(), Some(seconds));
        assert_eq!(
            field(&response, "x-ratelimit-reset").as_deref(),
            Some(seconds)
        );
        assert_eq!(
            field(&response, "ratelimit"),
            Some(format!(r#""one";r=0;t={seconds}"#))
        );
    }
}

#[tokio::test]
async fn peek_sees_the_full_quota() {
    let policy = Policy::new().limit(
        Limit::new("peek", Quota::per_minute(5))
            .cost(0)
            .by(key::everyone()),
    );
    let limited = limited(policy);
    for _ in 0..3 {
        assert_eq!(
            field(&limited.get().await, "ratelimit").as_deref(),
            Some(r#""peek";r=5;t=60"#)
        );
    }
}

#[tokio::test]
async fn every_response_carries_the_decision() {
    let limited = limited(Policy::new().limit(Limit::new("one", Quota::per_minute(1))));
    let admitted = limited.get().await;
    let decision = admitted
        .extensions()
        .get::<tower_quota::Decision>()
        .unwrap();
    assert!(decision.is_allowed());
    assert_eq!(decision.statuses().len(), 1);

    let refused = limited.get().await;
    let decision = refused.extensions().get::<tower_quota::Decision>().unwrap();
    assert_eq!(decision.retry_after(), Some(Duration::from_secs(60)));
}

#[tokio::test]
async fn shadow_limits_are_in_no_field() {
    let keyed = Limit::new("keyed", Quota::per_hour(1)).by(key::header("x-api-key"));
    let policy = Policy::new()
        .limit(Limit::new("real", Quota::per_minute(2)))
        .limit(Limit::new("dry", Quota::per_hour(1).fixed_window()).shadow())
        .limit(keyed.when_missing(MissingKey::Refuse).shadow());
    let limited = limited(policy);
    for (left, would_refuse) in [(1, 0), (0, 1)] {
        let response = limited.get().await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(
            field(&response, "ratelimit"),
            Some(format!(r#""real";r={left};t=30"#))
        );
        assert_eq!(
            field(&response, "ratelimit-policy").as_deref(),
            Some(r#""real";q=2;w=60"#)
        );
        assert_eq!(field(&response, "x-ratelimit-limit").as_deref(), Some("2"));
        let decision = response
            .extensions()
            .get::<tower_quota::Decision>()
            .unwrap();
        assert_eq!(
            decision
                .would_refuse()
                .filter(|status| status.name.as_str() == "dry")
                .count(),
            would_refuse
        );
    }
    let refused = limited.get().await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(&refused, "retry-after").as_deref(), Some("30"));
    assert_eq!(
        field(&refused, "ratelimit").as_deref(),
        Some(r#""real";r=0;t=30"#)
    );
    assert_eq!(
        refused
            .extensions()
            .get::<tower_quota::Decision>()
            .unwrap()
            .would_refuse()
            .count(),
        1
    );
}

#[tokio::test]
async fn batch_takes_what_is_left() {
    let policy = Policy::new()
        .limit(
            Limit::new("rows", Quota::per_minute(60))
                .at_most()
                .cost(100),
        )
        .limit(Limit::new("requests", Quota::per_minute(10)));
    let limited = limited(policy);
    let response = limited.get().await;
    let decision = response
        .extensions()
        .get::<tower_quota::Decision>()
        .unwrap();
    assert_eq!(
        decision
            .statuses()
            .iter()
            .map(|status| status.taken)
            .collect::<Vec<_>>(),
        [60, 1]
    );
    let refused = limited.get().await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(&refused, "retry-after").as_deref(), Some("1"));
}

#[tokio::test]
async fn penalty_shows_under_its_limits_name() {
    let penalty = Penalty::after(2)
        .step(Duration::from_secs(100))
        .most(Duration::from_secs(250));
    let limited =
        limited(Policy::new().limit(Limit::new("one", Quota::per_minute(1)).penalty(penalty)));
    assert_eq!(
        field(&limited.get().await, "ratelimit").as_deref(),
        Some(r#""one";r=0;t=60"#)
    );
    // The first two refusals add nothing, then each adds a step, up to two steps.
    for seconds in [60, 60, 100, 200, 200] {
        let refused = limited.get().await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(field(&refused, "retry-after"), Some(seconds.to_string()));
        assert_eq!(
            field(&refused, "ratelimit"),
            Some(format!(r#""one";r=0;t={seconds}"#))
        );
        assert_eq!(
            field(&refused, "ratelimit-policy").as_deref(),
            Some(r#""one";q=1;w=60"#)
        );
        assert_eq!(field(&refused, "x-ratelimit-limit").as_deref(), Some("1"));
        assert_eq!(
            field(&refused, "x-ratelimit-reset"),
            Some(seconds.to_string())
        );
    }
    limited.clock.advance(Duration::from_secs(200));
    assert_eq!(limited.get().await.status(), StatusCode::OK);
}

/// Returns the field `RateLimit` of a limit with this quota after these requests.
async fn windows(quota: Quota, requests: usize) -> String {
    let limited = Limited::new(Policy::new().limit(Limit::new("one", quota)));
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
        let limited = Limited::new(Policy::new().limit(Limit::new("one", quota)));
        for _ in 0..200 {
            let response = limited.get().await;
            assert_eq!(response.status(), StatusCode::OK, "{quota:?}");
            let left = field(&response, "ratelimit").unwrap();
            let (units, seconds) = left
                .strip_prefix("\"one\";r=")
                .unwrap()
                .split_once(";t=")
                .unwrap();
            let (units, seconds): (u32, u64) = (units.parse().unwrap(), seconds.parse().unwrap());
            limited
                .clock
                .advance(Duration::from_secs(seconds) / units.max(1));
        }
    }
}

#[tokio::test]
async fn unit_of_limit_is_in_its_policy() {
    let bytes = Limit::new("bytes", Quota::per_minute(1_000)).unit("content-bytes");
    let requests = Limit::new("requests", Quota::per_minute(10)).unit("requests");
    let limited = limited(Policy::new().limit(bytes).limit(requests));
    let policies = r#""bytes";q=1000;qu="content-bytes";w=60, "requests";q=10;w=60"#;
    assert_eq!(
        field(&limited.get().await, "ratelimit-policy").as_deref(),
        Some(policies)
    );
}

#[test]
fn unit_that_fits_no_header_is_refused() {
    let limit = Limit::new("bytes", Quota::per_minute(1_000)).unit("öctets");
    assert!(matches!(
        Policy::new().try_limit(limit),
        Err(tower_quota::ConfigError::LimitName(_))
    ));
}

#[test]
fn strikes_collide_with_no_other_limit() {
    let one = Limit::new("one", Quota::per_minute(1)).penalty(Penalty::after(2));
    let other = Limit::new("one penalty", Quota::per_minute(1));
    let error = Policy::new().limit(one).try_limit(other).unwrap_err();
    assert!(
        matches!(error, tower_quota::ConfigError::CollidingNames(..)),
        "{error}"
    );
}
