//! Shadow limits: clients always get the same responses as without them.

use http::{Request, Version};
use tower::Layer;
use tower_quota::HeaderStyle::{self, Draft7, Draft11, XRateLimit};
use tower_quota::settle::{Reservation, by_handler, only_failures};
use tower_quota::{
    Decision, Limit, MemoryStore, MissingKey, OnStoreFailure, Penalty, Policy, Protocol, Quota,
    RateLimitLayer, Reset, Store, key,
    store::{Charge, Operation},
};
use tower_quota_testkit::ManualClock;

use crate::fixture::{Inner, Limited, ScriptedStore, StoreControl, WITH_X, field, text, tokio_now};
use crate::shared::{
    answer_of, answer_to, assert_field, assert_no_field, per_hour, per_minute, policy_of, secs,
    stopped_store,
};

/// Returns shadow limits that would refuse nearly every request, for every kind of reason.
fn shadows() -> [Limit; 7] {
    let rare = Quota::new(1, secs(300 * 86_400));
    [
        per_minute("strict", 1),
        Limit::new("queue", Quota::per_minute(1).leaky_bucket().queue(3)).wait_jitter(secs(60)),
        per_minute("dear", 1)
            .cost_with(|_| u64::MAX)
            .settle(only_failures()),
        per_minute("keyed", 1)
            .by(key::header("x-api-key"))
            .when_missing(MissingKey::Refuse),
        per_minute("grim", 1)
            .penalty(Penalty::after(1))
            .count_refusals(),
        per_minute("refusing", 1).on_store_failure(OnStoreFailure::Refuse),
        // A quota that cannot be divided among the instances.
        per_minute("chosen", 1)
            .quota_with(move |_| Some(rare))
            .at_most(),
    ]
    .map(Limit::shadow)
}

fn with_shadows(policy: Policy) -> Policy {
    shadows().into_iter().fold(policy, Policy::limit)
}

/// Returns the responses to five requests, over HTTP and gRPC, of a layer with this style.
///
/// The store is available or not, as `fails` says.
async fn answers(policy: Policy, style: &HeaderStyle, fails: bool) -> Vec<String> {
    let clock = ManualClock::default();
    let store = ScriptedStore::with_clock(clock.clone());
    store.fail(fails);
    let layer =
        RateLimitLayer::new(store, policy).local_store(MemoryStore::with_clock(1_000, clock));
    let service = layer
        .headers([style.clone()])
        .protocol(Protocol::Both)
        .layer(Inner::default());
    let mut answers = Vec::new();
    for i in 0..5 {
        let request = match i % 2 {
            0 => Request::get("/"),
            _ => Request::post("/")
                .version(Version::HTTP_2)
                .header("content-type", "application/grpc"),
        };
        let begun = tokio_now();
        let response = answer_to(&service, request.body(()).unwrap()).await;
        let head = format!(
            "{} {:?} {:?}",
            response.status(),
            tokio_now() - begun,
            response.headers()
        );
        answers.push(format!("{head} {}", text(response).await));
    }
    answers
}

const STYLES: [HeaderStyle; 4] = [
    Draft11,
    Draft7,
    XRateLimit(Reset::Delta),
    XRateLimit(Reset::Epoch),
];

#[tokio::test(start_paused = true)]
async fn shadows_change_no_response() {
    let two = Policy::new()
        .instances(2)
        .limit(Limit::new("two", Quota::per_minute(4).burst(2)));
    let queue = two.clone().limit(Limit::new(
        "line",
        Quota::per_second(1).leaky_bucket().queue(3),
    ));
    for policy in [two, queue].map(|policy| move || policy.clone()) {
        for style in &STYLES {
            assert_eq!(
                answers(with_shadows(policy()), style, false).await,
                answers(policy(), style, false).await
            );
        }
        for choice in [
            OnStoreFailure::Allow,
            OnStoreFailure::Local,
            OnStoreFailure::Refuse,
        ] {
            let policy = || policy().on_store_failure(choice);
            for style in &STYLES {
                let (with, without) = (
                    answers(with_shadows(policy()), style, true),
                    answers(policy(), style, true),
                );
                assert_eq!(with.await, without.await, "{choice:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lone_shadow_behaves_like_no_limit() {
    for fails in [false, true] {
        for choice in [
            OnStoreFailure::Allow,
            OnStoreFailure::Local,
            OnStoreFailure::Refuse,
        ] {
            let policy = || Policy::new().instances(2).on_store_failure(choice);
            let none = answers(policy(), &Draft11, false).await;
            assert_eq!(
                answers(with_shadows(policy()), &Draft11, fails).await,
                none,
                "{choice:?}"
            );
        }
    }
}

#[tokio::test]
async fn shadow_alone_marks_response_uncounted() {
    let policy = policy_of(per_minute("real", 5)).limit(
        per_minute("dry", 5)
            .shadow()
            .on_store_failure(OnStoreFailure::Local),
    );
    let clock = ManualClock::default();
    let store = ScriptedStore::with_clock(clock.clone());
    store.fail(true);
    let service = RateLimitLayer::new(store, policy)
        .headers(WITH_X)
        .layer(Inner::default());
    let response = answer_of(&service).await;
    assert_field(&response, "x-ratelimit-remaining", "-1");
    assert_field(&response, "x-ratelimit-policy", "degraded");
}

#[tokio::test]
async fn shadow_header_names_refusing_shadows() {
    let policy = policy_of(per_minute("one", 1))
        .limit(per_minute("dry", 1).shadow())
        .limit(per_minute("wet", 9).shadow());
    let limited = Limited::with(policy, RateLimitLayer::shadow_header);
    assert_no_field(&limited.get().await, "x-ratelimit-shadow");
    let refused = limited.get().await;
    assert_eq!(
        (
            refused.status().as_u16(),
            field(&refused, "x-ratelimit-shadow").as_deref()
        ),
        (429, Some(r#""dry""#))
    );
}

#[tokio::test]
async fn refusing_shadow_is_not_settled() {
    let store = ScriptedStore::new();
    let dry = per_hour("dry", 10).cost(8).settle(by_handler()).shadow();
    let policy = policy_of(per_hour("real", 100)).limit(dry);
    let handler = tower::service_fn(|request: Request<()>| {
        let reservation = request.extensions().get().cloned().unwrap_or_default();
        let part = Reservation::settle(&reservation, "dry", 9);
        async move { Ok::<_, std::convert::Infallible>(http::Response::new(part)) }
    });
    let service = RateLimitLayer::new(store.clone(), policy).layer(handler);
    for (call, calls) in [(true, 1), (false, 1)] {
        let response = answer_of(&service).await;
        assert_eq!(
            (response.status().as_u16(), store.settled().len()),
            (200, calls),
            "{call}"
        );
    }
    // The first took 9. If the second had been refused, it would have cost nothing.
    assert_eq!(store.left("dry", Quota::per_hour(10)), 1);
}

/// A store that takes no more charges than every store has to.
#[derive(Clone)]
struct Narrow(MemoryStore);

impl Store for Narrow {
    type Error = std::io::Error;
    type Future = std::future::Ready<Result<Decision, std::io::Error>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let Ok(decision) = self.0.apply(operation, charges).into_inner();
        std::future::ready(if charges.len() > Charge::MOST {
            Err(std::io::Error::other("too many"))
        } else {
            Ok(decision)
        })
    }
}

#[tokio::test]
async fn many_shadows_leave_limits_enforced() {
    let enforced = (0..17).map(|number| per_minute(format!("limit-{number}"), 1));
    let shadows = (0..17).map(|number| per_minute(format!("shadow-{number}"), 1).shadow());
    let policy = enforced.chain(shadows).fold(Policy::new(), Policy::limit);
    let service = RateLimitLayer::new(Narrow(stopped_store()), policy).layer(Inner::default());
    for status in [200, 429] {
        assert_eq!(answer_of(&service).await.status(), status);
    }
}
