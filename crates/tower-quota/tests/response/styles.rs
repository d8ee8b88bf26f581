//! Every header style, in admitted, refused and degraded responses.

use std::time::Duration;

use http::StatusCode;
use tower::{Layer, ServiceExt};
use tower_quota::HeaderStyle::{self, Draft6, Draft7, Draft11, XRateLimit};
use tower_quota::Reset::{Delta, Epoch};
use tower_quota::{
    Limit, MemoryStore, OnStoreFailure, Policy, Protocol, Quota, RateLimitLayer, store::Clock,
};
use tower_quota_testkit::{ManualClock, ScriptedAnswer, ScriptedStore};

use crate::shared::{
    Answer, Inner, Limited, assert_field, field, per_hour, per_minute, per_second, policy_of, secs,
};

/// Returns a policy of two requests in two seconds, four a minute, many an hour.
fn policy() -> Policy {
    policy_of(Limit::new("burst", Quota::new(2, secs(2))))
        .limit(per_minute("minute", 4))
        .limit(per_hour("hour", 1_000))
}

fn limited(styles: &[HeaderStyle], policy: Policy) -> Limited {
    Limited::with(policy, |layer| layer.headers(styles.to_vec()))
}

/// Returns all fields of a response, sorted.
fn lines(response: &Answer) -> Vec<String> {
    let mut lines: Vec<String> = response
        .headers()
        .keys()
        .filter(|name| !["content-type", "cache-control"].contains(&name.as_str()))
        .map(|name| format!("{name}: {}", field(response, name.as_str()).unwrap()))
        .collect();
    lines.sort_by(|one, other| one.split_once(": ").cmp(&other.split_once(": ")));
    lines
}

/// Returns the fields of the first response, and of the third, which is a refusal.
async fn answers(style: HeaderStyle) -> [Vec<String>; 2] {
    let limited = limited(&[style], policy());
    let first = limited.get().await;
    limited.get().await;
    let third = limited.get().await;
    assert_eq!(
        [first.status(), third.status()],
        [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS]
    );
    [lines(&first), lines(&third)]
}

#[tokio::test]
async fn draft_11_names_every_limit() {
    let [admitted, refused] = answers(Draft11).await;
    let policy = r#"ratelimit-policy: "burst";q=2;w=2, "minute";q=4;w=60, "hour";q=1000;w=3600"#;
    assert_eq!(
        admitted,
        [
            r#"ratelimit: "burst";r=1;t=1, "minute";r=3;t=45, "hour";r=999;t=3597"#,
            policy
        ]
    );
    assert_eq!(
        refused,
        [r#"ratelimit: "burst";r=0;t=1"#, policy, "retry-after: 1"]
    );
}

#[tokio::test]
async fn draft_7_is_a_dictionary() {
    let [admitted, refused] = answers(Draft7).await;
    let policy = "ratelimit-policy: 2;w=2, 4;w=60, 1000;w=3600";
    assert_eq!(
        admitted,
        ["ratelimit: limit=2, remaining=1, reset=1", policy]
    );
    assert_eq!(
        refused,
        [
            "ratelimit: limit=2, remaining=0, reset=1",
            policy,
            "retry-after: 1"
        ]
    );
}

#[tokio::test]
async fn draft_6_has_a_field_per_number() {
    let [admitted, refused] = answers(Draft6).await;
    let policy = "ratelimit-policy: 2;w=2, 4;w=60, 1000;w=3600";
    let [limit, reset] = ["ratelimit-limit: 2", "ratelimit-reset: 1"];
    assert_eq!(admitted, [limit, policy, "ratelimit-remaining: 1", reset]);
    assert_eq!(
        refused,
        [
            limit,
            policy,
            "ratelimit-remaining: 0",
            reset,
            "retry-after: 1"
        ]
    );
}

#[tokio::test]
async fn quotas_without_names_are_listed_once() {
    let policy = || {
        policy_of(per_minute("minute", 100))
            .limit(per_minute("other minute", 100))
            .limit(per_second("second", 5))
            .limit(per_hour("hour", 100))
    };
    let response = limited(&[Draft7], policy()).get().await;
    assert_field(&response, "ratelimit-policy", "100;w=3600, 5;w=1");
    let twins = policy_of(per_minute("minute", 100)).limit(per_minute("other minute", 100));
    let response = limited(&[Draft7], twins).get().await;
    assert_field(&response, "ratelimit-policy", "100;w=60");
}

#[tokio::test]
async fn epoch_uses_the_stores_clock() {
    let limited = limited(&[XRateLimit(Epoch)], policy());
    limited.clock.advance(Duration::from_micros(500_001));
    let now = limited.clock.now().as_micros();
    let response = limited.get().await;
    // The limit "burst" refills a unit in a second.
    let reset = (now + 1_000_000).div_ceil(1_000_000);
    let expected = [
        "x-ratelimit-limit: 2",
        "x-ratelimit-remaining: 1",
        &format!("x-ratelimit-reset: {reset}"),
    ];
    assert_eq!(lines(&response), expected);
}

#[tokio::test]
async fn several_styles_or_none_are_written() {
    let both = limited(&[Draft7, XRateLimit(Delta)], policy()).get().await;
    for name in ["ratelimit", "ratelimit-policy", "x-ratelimit-remaining"] {
        assert!(both.headers().contains_key(name), "{name}");
    }
    let none = limited(&[], policy());
    assert_eq!(lines(&none.get().await), [""; 0]);
    none.get().await;
    assert_eq!(lines(&none.get().await), ["retry-after: 1"]);
}

#[tokio::test]
async fn defaults_are_draft_11_and_x_ratelimit() {
    let default = Limited::new(policy()).get().await;
    let chosen = limited(&[Draft11, XRateLimit(Epoch)], policy()).get().await;
    assert_eq!(lines(&default), lines(&chosen));
    assert_eq!(lines(&default).len(), 5);
}

#[test]
#[should_panic(expected = "two of the header styles write ratelimit")]
fn styles_that_share_a_field_panic() {
    let _ = RateLimitLayer::new(MemoryStore::new(), Policy::new()).headers([Draft11, Draft7]);
}

/// Returns the fields while the store is unavailable, for this choice.
///
/// The local share is half of 4 a minute.
async fn degraded(style: &HeaderStyle, choice: OnStoreFailure) -> Vec<String> {
    let clock = ManualClock::default();
    let store = ScriptedStore::with_clock(clock.clone());
    store.set_default(ScriptedAnswer::error("out of order"));
    let policy = policy_of(per_minute("minute", 4).on_store_failure(choice)).instances(2);
    let layer = RateLimitLayer::new(store, policy)
        .local_store(MemoryStore::with_clock(10, clock))
        .headers([style.clone()]);
    let response = layer
        .layer(Inner::default())
        .oneshot(http::Request::new(()))
        .await
        .unwrap();
    lines(&response)
}

#[tokio::test]
async fn every_style_marks_degraded_responses() {
    let mark = "x-ratelimit-policy: degraded";
    for style in [
        Draft11,
        Draft7,
        Draft6,
        XRateLimit(Delta),
        XRateLimit(Epoch),
    ] {
        let legacy = matches!(style, XRateLimit(_));
        let uncounted = degraded(&style, OnStoreFailure::Allow).await;
        assert_eq!(
            uncounted,
            if legacy {
                vec![mark, "x-ratelimit-remaining: -1"]
            } else {
                vec![mark]
            },
            "{style:?}"
        );
        let refused = degraded(&style, OnStoreFailure::Refuse).await;
        assert_eq!(refused, ["retry-after: 1", mark], "{style:?}");
        let local = degraded(&style, OnStoreFailure::Local).await;
        assert!(local.iter().any(|line| line == mark), "{style:?}");
        let share = ["x-ratelimit-limit: 2", "x-ratelimit-remaining: 1"].map(String::from);
        assert_eq!(
            share.iter().all(|line| local.contains(line)),
            legacy,
            "{style:?}: {local:?}"
        );
        let standard = local.iter().any(|line| line.starts_with("ratelimit"));
        assert!(!standard, "{style:?}: {local:?}");
    }
}

#[test]
fn layer_exposes_only_its_own_fields() {
    let exposed = |layer: RateLimitLayer<MemoryStore>| {
        let fields = layer.exposed_headers();
        let names: Vec<&str> = fields.iter().map(|field| field.as_str()).collect();
        names.join(" ")
    };
    let layer = || RateLimitLayer::new(MemoryStore::new(), Policy::new()).protocol(Protocol::Http);
    assert_eq!(
        exposed(layer()),
        "retry-after www-authenticate ratelimit ratelimit-policy x-ratelimit-limit \
         x-ratelimit-remaining x-ratelimit-reset x-ratelimit-policy"
    );
    assert_eq!(exposed(layer().headers([])), "retry-after www-authenticate");
    let grpc = layer().headers([]).protocol(Protocol::Both).shadow_header();
    assert_eq!(
        exposed(grpc),
        "retry-after www-authenticate x-ratelimit-shadow grpc-status grpc-message \
         grpc-status-details-bin grpc-retry-pushback-ms"
    );
}

#[test]
#[should_panic(expected = "two of the header styles write x-ratelimit-limit")]
fn same_style_with_two_resets_panics() {
    let styles = [XRateLimit(Delta), XRateLimit(Epoch)];
    let _ = RateLimitLayer::new(MemoryStore::new(), Policy::new()).headers(styles);
}
