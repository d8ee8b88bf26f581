//! Limits of which a closure chooses for each request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request};
use tower_quota::{
    ConfigError, HandleError, Limit, Name, Policy, Quota, RequestHead, key, policy::Chosen,
};

use crate::fixture::{Answer, Limited, WITH_X, field};
use crate::shared::{answer_to, millis, per_minute, per_second, policy_of, serve, stopped_layer};

/// Adds the limits at the positions in the header `meets`, each with the quota in `units`.
fn by_header(head: &RequestHead<'_>, chosen: &mut Chosen<'_>) {
    let text = |name| {
        head.headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    let units = text("units").and_then(|units| units.parse().ok());
    for position in text("meets")
        .unwrap_or_default()
        .split(' ')
        .filter_map(|position| position.parse().ok())
    {
        chosen.add(position, units.map(Quota::per_minute));
    }
}

/// Returns this many limits of 5 a minute, named `rule-0` and so on.
fn rules(count: usize) -> Vec<Limit> {
    let limit = |position| per_minute(format!("rule-{position}"), 5).by(key::header("user"));
    (0..count).map(limit).collect()
}

fn meeting(positions: &str) -> http::request::Builder {
    Request::get("/")
        .header("user", "ann")
        .header("meets", positions)
}

/// Returns the fields `RateLimit-Policy` and `RateLimit`.
fn rate_fields(response: &Answer) -> [String; 2] {
    ["ratelimit-policy", "ratelimit"].map(|name| field(response, name).unwrap_or_default())
}

#[tokio::test]
async fn request_meets_chosen_limits_only() {
    let limited = Limited::with(Policy::new().choose(rules(10_000), by_header), |layer| {
        layer.headers(WITH_X)
    });
    let expected = [
        r#""rule-7000";q=5;w=60, "rule-3";q=5;w=60"#,
        r#""rule-7000";r=4;t=48, "rule-3";r=4;t=48"#,
    ];
    assert_eq!(
        rate_fields(&limited.send(meeting("7000 3")).await),
        expected
    );
    let expected = [r#""rule-3";q=5;w=60"#, r#""rule-3";r=3;t=36"#];
    assert_eq!(rate_fields(&limited.send(meeting("3")).await), expected);
    assert_eq!(rate_fields(&limited.send(meeting("")).await), ["", ""]);
}

#[tokio::test]
async fn chosen_limits_follow_listed_ones() {
    let policy = Policy::new()
        .choose(rules(2), by_header)
        .limit(per_second("all", 8))
        .choose([per_minute("other", 7)], by_header);
    let limited = Limited::with(policy, |layer| layer.headers(WITH_X));
    let expected = r#""all";q=8;w=1, "rule-1";q=5;w=60"#;
    assert_eq!(rate_fields(&limited.send(meeting("1")).await)[0], expected);
    let expected = r#""all";q=8;w=1, "rule-0";q=5;w=60, "other";q=7;w=60"#;
    assert_eq!(rate_fields(&limited.send(meeting("0")).await)[0], expected);
}

#[tokio::test]
async fn chosen_quota_counts_and_is_reported() {
    let limited = Limited::with(Policy::new().choose(rules(3), by_header), |layer| {
        layer.headers(WITH_X)
    });
    let request = || meeting("1").header("units", "2");
    let expected = [r#""rule-1";q=2;w=60"#, r#""rule-1";r=1;t=30"#];
    assert_eq!(rate_fields(&limited.send(request()).await), expected);
    assert_eq!(limited.send(request()).await.status(), 200);
    assert_eq!(limited.send(request()).await.status(), 429);
}

#[tokio::test]
async fn invalid_and_repeated_positions_are_ignored() {
    let limited = Limited::with(Policy::new().choose(rules(2), by_header), |layer| {
        layer.headers(WITH_X)
    });
    let response = limited.send(meeting("1 2 1 18446744073709551615")).await;
    assert_eq!(
        rate_fields(&response),
        [r#""rule-1";q=5;w=60"#, r#""rule-1";r=4;t=48"#]
    );
}

#[tokio::test]
async fn conditions_of_chosen_limits_hold() {
    let posts = per_minute("posts", 1).when(|head| head.method() == Method::POST);
    let limited = Limited::with(Policy::new().choose([posts], by_header), |layer| {
        layer.headers(WITH_X)
    });
    assert_eq!(rate_fields(&limited.send(meeting("0")).await), ["", ""]);
    let post = meeting("0").method(Method::POST);
    assert_eq!(
        rate_fields(&limited.send(post).await)[0],
        r#""posts";q=1;w=60"#
    );
}

#[tokio::test]
async fn chosen_limits_read_one_key_once() {
    let reads = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&reads);
    let user = key::from_fn("user", move |head| {
        seen.fetch_add(1, Ordering::Relaxed);
        Some(head.headers().get("user")?.as_bytes().to_vec())
    });
    let limit = |name: &'static str| per_minute(name, 5).by(user.clone());
    let policy = policy_of(limit("listed")).choose([limit("one"), limit("two")], by_header);
    let limited = Limited::new(policy);
    limited.send(meeting("0 1")).await;
    assert_eq!(reads.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn chosen_queue_makes_requests_wait() {
    let queue = Quota::per_second(10).leaky_bucket();
    let policy = Policy::new().choose(rules(1), move |_, chosen| chosen.add(0, Some(queue)));
    let limited = Limited::new(policy);
    tokio::time::pause();
    let begun = crate::fixture::tokio_now();
    for _ in 0..3 {
        assert_eq!(limited.send(meeting("")).await.status(), 200);
    }
    assert!(begun.elapsed() >= millis(90), "{:?}", begun.elapsed());
}

#[test]
fn invalid_chosen_limits_are_refused() {
    let listed = policy_of(per_minute("rule-1", 1));
    let error = listed.try_choose(rules(2), by_header).unwrap_err();
    assert_eq!(error, ConfigError::DuplicateLimit(Name::new("rule-1")));
    let chosen = Policy::new().choose(rules(2), by_header);
    let error = chosen.try_limit(per_minute("rule-0", 1)).unwrap_err();
    assert_eq!(error, ConfigError::DuplicateLimit(Name::new("rule-0")));
    let dear = per_minute("dear", 1).cost(2);
    assert!(matches!(
        Policy::new().try_choose([dear], by_header),
        Err(ConfigError::CostAboveCapacity { .. })
    ));
    assert!(
        Policy::new()
            .choose(rules(2), by_header)
            .try_instances(0)
            .is_err()
    );
}

#[tokio::test]
async fn handle_finds_chosen_limits() {
    let (service, handle) = serve(stopped_layer(Policy::new().choose(rules(100), by_header)));
    let request = || meeting("42").body(()).unwrap();
    answer_to(&service, request()).await;
    assert_eq!(handle.peek("rule-42", "ann").await.unwrap().remaining(), 4);
    assert_eq!(handle.reset("rule-42", "ann").await.unwrap().remaining(), 5);
    assert_eq!(handle.limits().len(), 100);
    let unknown = handle.peek("rule-100", "ann").await.unwrap_err();
    assert!(
        matches!(unknown, HandleError::UnknownLimit { ref known, .. } if known.len() == 100),
        "{unknown:?}"
    );
}

#[tokio::test]
async fn handle_counts_request_by_its_quota() {
    let (service, handle) = serve(stopped_layer(Policy::new().choose(rules(100), by_header)));
    let (request, _) = meeting("42")
        .header("units", "900")
        .body(())
        .unwrap()
        .into_parts();
    answer_to(&service, Request::from_parts(request.clone(), ())).await;
    assert_eq!(
        handle.peek("rule-42", &request).await.unwrap().remaining(),
        899
    );
    assert_eq!(
        handle
            .grant("rule-42", &request, 1)
            .await
            .unwrap()
            .remaining(),
        900
    );
}
