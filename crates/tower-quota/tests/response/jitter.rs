//! Refused clients get different times to retry, none of them too early.

use std::collections::BTreeSet;
use std::time::Duration;

use http::{Request, Version};
use tower::Layer;
use tower_quota::HeaderStyle::{Draft7, Draft11, XRateLimit};
use tower_quota::Reset::{Delta, Epoch};
use tower_quota::{Limit, OnStoreFailure, Policy, Protocol, Quota, RateLimitLayer, store::Clock};

use crate::shared::{
    Answer, Inner, Limited, answer_of, assert_field, assert_no_field, decision_of, failing_store,
    field, per_minute, policy_of, secs, text,
};

/// Returns a policy of one request in four seconds.
fn policy() -> Policy {
    policy_of(Limit::new("one", Quota::new(1, secs(4))))
}

const JITTER: Duration = Duration::from_secs(6);

fn number(response: &Answer, name: &str) -> u64 {
    field(response, name).unwrap().parse().unwrap()
}

#[tokio::test]
async fn one_response_has_one_time() {
    let limited = Limited::with(policy(), |layer| {
        layer
            .retry_jitter(JITTER)
            .headers([Draft11, XRateLimit(Delta)])
    });
    limited.get().await;
    let mut times = BTreeSet::new();
    for _ in 0..100 {
        let response = limited.get().await;
        let seconds = number(&response, "retry-after");
        assert!((4..=10).contains(&seconds), "{seconds}");
        times.insert(seconds);
        assert_eq!(
            field(&response, "ratelimit"),
            Some(format!("\"one\";r=0;t={seconds}"))
        );
        // The reset is never before the time to retry, although the limit is full before.
        assert_eq!(number(&response, "x-ratelimit-reset"), seconds);
        // The decision keeps the exact time.
        let exact = decision_of(&response).retry_after();
        assert_eq!(exact, Some(secs(4)));
        assert!(
            text(response)
                .await
                .contains(&format!("retry in {seconds} seconds"))
        );
    }
    assert!(times.len() > 3, "{times:?}");
}

#[tokio::test]
async fn full_queue_refusals_are_spread() {
    let queue = Limit::new("queue", Quota::per_second(1).leaky_bucket().queue(9));
    let limited = Limited::with(policy_of(queue), |layer| {
        layer.max_waiting(0).retry_jitter(JITTER)
    });
    limited.get().await;
    let mut times = BTreeSet::new();
    for _ in 0..100 {
        let refused = limited.get().await;
        let seconds = number(&refused, "retry-after");
        assert!((1..=7).contains(&seconds), "{seconds}");
        assert_eq!(
            field(&refused, "ratelimit"),
            Some(format!("\"queue\";r=8;t={seconds}"))
        );
        times.insert(seconds);
    }
    assert!(times.len() > 3, "{times:?}");
}

#[tokio::test]
async fn other_styles_include_the_jitter() {
    let limited = Limited::with(policy(), |layer| {
        layer
            .retry_jitter(JITTER)
            .headers([Draft7, XRateLimit(Epoch)])
    });
    limited.get().await;
    let now = limited.clock.now().as_micros();
    for _ in 0..20 {
        let response = limited.get().await;
        let seconds = number(&response, "retry-after");
        assert_eq!(
            field(&response, "ratelimit"),
            Some(format!("limit=1, remaining=0, reset={seconds}"))
        );
        let reset = number(&response, "x-ratelimit-reset");
        assert!(
            reset >= (now + 4_000_000) / 1_000_000 && reset <= now.div_ceil(1_000_000) + seconds,
            "{reset}"
        );
    }
}

#[tokio::test]
async fn grpc_and_custom_refusals_include_jitter() {
    let limited = Limited::with(policy(), |layer| {
        layer
            .retry_jitter(JITTER)
            .protocol(Protocol::Both)
            .on_refused(|refused| {
                http::Response::new(format!(
                    "{}",
                    refused
                        .retry_after()
                        .unwrap()
                        .as_micros()
                        .div_ceil(1_000_000)
                ))
            })
    });
    limited.get().await;
    for _ in 0..20 {
        let response = limited.get().await;
        let seconds = field(&response, "retry-after").unwrap();
        assert_eq!(text(response).await, seconds);

        let call = Request::post("/")
            .version(Version::HTTP_2)
            .header("content-type", "application/grpc");
        let response = limited.send(call).await;
        let millis = number(&response, "grpc-retry-pushback-ms");
        assert!((4_000..=10_000).contains(&millis));
        assert_eq!(number(&response, "retry-after"), millis.div_ceil(1_000));
    }
}

#[tokio::test]
async fn unavailable_store_spreads_its_clients() {
    let policy = policy().on_store_failure(OnStoreFailure::Refuse);
    let service = RateLimitLayer::new(failing_store(), policy)
        .retry_jitter(JITTER)
        .layer(Inner::default());
    let mut times = BTreeSet::new();
    for _ in 0..100 {
        let response = answer_of(&service).await;
        assert_eq!(response.status(), 503);
        times.insert(number(&response, "retry-after"));
    }
    assert!(
        times.len() > 3 && times.first() >= Some(&1) && times.last() <= Some(&7),
        "{times:?}"
    );
}

#[tokio::test]
async fn cost_above_capacity_gets_no_time() {
    let never = policy_of(per_minute("units", 1).cost_with(|_| 2));
    let response = Limited::with(never, |layer| layer.retry_jitter(JITTER))
        .get()
        .await;
    assert_no_field(&response, "retry-after");
    assert_field(&response, "ratelimit", "\"units\";r=1");
}
