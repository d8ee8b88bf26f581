//! Nested limiters.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use std::convert::Infallible;
use std::future::ready;
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};
use tower_quota::{MemoryStore, RateLimitLayer};

use crate::fixture::{Inner, WITH_X, field};
use crate::shared::{answer_of, assert_field, decision_of, per_minute, policy_of, stopped_store};

fn layer(name: &'static str, units: u64) -> RateLimitLayer<MemoryStore> {
    let store = stopped_store();
    let policy = policy_of(per_minute(name, units));
    RateLimitLayer::new(store, policy)
        .attach_decision()
        .headers(WITH_X)
}

#[tokio::test]
async fn nested_lists_merge_and_stricter_fields_stay() {
    for (outer, inner) in [(100, 10), (10, 100)] {
        let service = ServiceBuilder::new()
            .layer(layer("outer", outer))
            .layer(layer("inner", inner))
            .service(Inner::default());
        let response = answer_of(&service).await;
        let policies = format!(r#""inner";q={inner};w=60, "outer";q={outer};w=60"#);
        assert_eq!(field(&response, "ratelimit-policy"), Some(policies));
        let left = field(&response, "ratelimit").unwrap();
        assert!(
            left.contains(&format!(r#""inner";r={}"#, inner - 1)),
            "{left}"
        );
        assert!(
            left.contains(&format!(r#""outer";r={}"#, outer - 1)),
            "{left}"
        );
        assert_field(&response, "x-ratelimit-limit", "10");
        assert_field(&response, "x-ratelimit-remaining", "9");
    }
}

#[tokio::test]
async fn same_limit_shares_counter_across_layers() {
    let store = stopped_store();
    let policy = |name| policy_of(per_minute(name, 10));
    let layer = |name| RateLimitLayer::new(store.clone(), policy(name)).headers(WITH_X);
    let [one, other, apart] =
        ["minute", "minute", "login-minute"].map(|name| layer(name).layer(Inner::default()));
    for (service, remaining) in [(one, "9"), (other, "8"), (apart, "9")] {
        let response = answer_of(&service).await;
        assert_field(&response, "x-ratelimit-remaining", remaining);
    }
}

#[tokio::test]
async fn inner_refusal_keeps_response_and_decision() {
    let service = ServiceBuilder::new()
        .layer(layer("outer", 100))
        .layer(layer("inner", 1))
        .service(Inner::default());
    answer_of(&service).await;
    let response = answer_of(&service).await;
    assert_eq!(response.status(), 429);
    assert_field(&response, "retry-after", "60");
    assert_field(&response, "x-ratelimit-remaining", "0");
    let decision = decision_of(&response);
    assert_eq!(decision.tightest().unwrap().name.as_str(), "inner");
}

/// Returns the `X-RateLimit` fields of a limit of 10 a minute around a service with fields.
///
/// They are limit, remaining and reset; the service has written its own.
async fn fields_over(foreign: &'static [(&'static str, &'static str)]) -> [Option<String>; 3] {
    let service = service_fn(move |_: Request<()>| {
        let mut response = Response::new(Full::<Bytes>::default());
        for (name, value) in foreign {
            response.headers_mut().append(*name, value.parse().unwrap());
        }
        ready(Ok::<_, Infallible>(response))
    });
    let response = layer("outer", 10)
        .layer(service)
        .oneshot(Request::new(()))
        .await
        .unwrap();
    [
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
    ]
    .map(|name| field(&response, name))
}

fn some(fields: [&str; 3]) -> [Option<String>; 3] {
    fields.map(|field| Some(field.to_owned()))
}

#[tokio::test]
async fn stricter_complete_foreign_fields_stay() {
    let strict = &[
        ("x-ratelimit-limit", "5"),
        ("x-ratelimit-remaining", "3"),
        ("x-ratelimit-reset", "30"),
    ];
    assert_eq!(fields_over(strict).await, some(["5", "3", "30"]));
    let lax = &[
        ("x-ratelimit-limit", "50"),
        ("x-ratelimit-remaining", "10"),
        ("x-ratelimit-reset", "30"),
    ];
    assert_eq!(fields_over(lax).await, some(["10", "9", "6"]));
}

#[tokio::test]
async fn incomplete_or_invalid_foreign_fields_are_replaced() {
    let ours = some(["10", "9", "6"]);
    assert_eq!(fields_over(&[("x-ratelimit-remaining", "3")]).await, ours);
    assert_eq!(
        fields_over(&[("x-ratelimit-remaining", "3"), ("x-ratelimit-reset", "30")]).await,
        ours
    );
    assert_eq!(
        fields_over(&[("x-ratelimit-limit", "5"), ("x-ratelimit-remaining", "3")]).await,
        ours
    );
    assert_eq!(
        fields_over(&[
            ("x-ratelimit-limit", "?"),
            ("x-ratelimit-remaining", "plenty")
        ])
        .await,
        ours
    );
    let unreadable = &[
        ("x-ratelimit-limit", "?"),
        ("x-ratelimit-remaining", "3"),
        ("x-ratelimit-reset", "soon"),
    ];
    assert_eq!(fields_over(unreadable).await, ours);
}
