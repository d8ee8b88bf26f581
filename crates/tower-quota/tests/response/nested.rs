//! Fields of an inner limiter are kept, and become no more permissive, in every style.

use std::convert::Infallible;
use std::future::ready;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};
use tower_quota::HeaderStyle::{self, Draft6, Draft7, Draft11, XRateLimit};
use tower_quota::Reset::Delta;
use tower_quota::{MemoryStore, RateLimitLayer};

use crate::shared::{
    Answer, Inner, answer_of, assert_field, assert_no_field, field, per_minute, policy_of,
    stopped_store,
};

fn layer(style: HeaderStyle, name: &'static str, units: u64) -> RateLimitLayer<MemoryStore> {
    let store = stopped_store();
    let policy = policy_of(per_minute(name, units));
    RateLimitLayer::new(store, policy).headers([style])
}

#[tokio::test]
async fn stricter_of_two_layers_is_reported() {
    for (outer, inner) in [(100, 10), (10, 100)] {
        for (style, name, strict) in [
            (Draft7, "ratelimit", "limit=10, remaining=9, reset=6"),
            (Draft6, "ratelimit-remaining", "9"),
            (XRateLimit(Delta), "x-ratelimit-limit", "10"),
        ] {
            let service = ServiceBuilder::new()
                .layer(layer(style.clone(), "outer", outer))
                .layer(layer(style.clone(), "inner", inner))
                .service(Inner::default());
            let response = answer_of(&service).await;
            assert_eq!(
                field(&response, name).as_deref(),
                Some(strict),
                "{style:?} {outer} {inner}"
            );
            if matches!(style, Draft6 | Draft7) {
                let both = format!("{inner};w=60, {outer};w=60");
                assert_eq!(
                    field(&response, "ratelimit-policy"),
                    Some(both),
                    "{style:?}"
                );
            }
        }
    }
}

type Fields = &'static [(&'static str, &'static str)];

/// Returns the answer of a limit of 10 a minute in this style, around a service with this status and fields.
async fn around(style: HeaderStyle, status: u16, foreign: Fields) -> Answer {
    let service = service_fn(move |_: Request<()>| {
        let mut response = Response::new(Full::<Bytes>::default());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        for (name, value) in foreign {
            response.headers_mut().append(*name, value.parse().unwrap());
        }
        ready(Ok::<_, Infallible>(response))
    });
    layer(style, "outer", 10)
        .layer(service)
        .oneshot(Request::new(()))
        .await
        .unwrap()
}

/// Returns a field of a limit of 10 a minute in this style, around a service with fields.
async fn over(style: HeaderStyle, foreign: Fields, name: &str) -> Option<String> {
    field(&around(style, 200, foreign).await, name)
}

#[tokio::test]
async fn success_with_retry_after_keeps_our_fields() {
    for status in [200, 202, 203, 301, 304] {
        let response = around(Draft11, status, &[("retry-after", "9")]).await;
        assert_field(&response, "retry-after", "9");
        assert_field(&response, "ratelimit", r#""outer";r=9;t=54"#);
        assert_field(&response, "ratelimit-policy", r#""outer";q=10;w=60"#);
    }
}

#[tokio::test]
async fn failure_with_retry_after_gets_no_fields() {
    let grpc: Fields = &[("retry-after", "9"), ("grpc-status", "8")];
    for (status, foreign) in [(429, &grpc[..1]), (503, &grpc[..1]), (200, grpc)] {
        let response = around(Draft11, status, foreign).await;
        assert_field(&response, "retry-after", "9");
        assert_no_field(&response, "ratelimit");
        assert_no_field(&response, "ratelimit-policy");
    }
    let ok: Fields = &[("retry-after", "9"), ("grpc-status", "0")];
    let response = around(Draft11, 200, ok).await;
    assert_field(&response, "ratelimit", r#""outer";r=9;t=54"#);
}

#[tokio::test]
async fn answer_has_fields_of_one_draft() {
    let draft7 = [
        ("ratelimit", "limit=5, remaining=3, reset=9"),
        ("ratelimit-policy", "5;w=9"),
    ];
    let draft11 = [
        ("ratelimit", r#""in";r=3;t=9"#),
        ("ratelimit-policy", r#""in";q=5;w=9"#),
    ];
    let fields =
        |response: &Answer| ["ratelimit", "ratelimit-policy"].map(|name| field(response, name));
    for (style, [status, policy]) in [(Draft11, draft7), (Draft7, draft11), (Draft6, draft11)] {
        for foreign in [status, policy] {
            let response = around(style.clone(), 200, vec![foreign].leak()).await;
            let kept = [status, policy].map(|field| (field == foreign).then(|| field.1.to_owned()));
            assert_eq!(fields(&response), kept, "{style:?}");
            assert_no_field(&response, "ratelimit-remaining");
        }
    }
}

#[tokio::test]
async fn policy_without_status_is_extended() {
    let response = around(Draft11, 200, &[("ratelimit-policy", r#""in";q=5;w=9"#)]).await;
    assert_field(&response, "ratelimit", r#""outer";r=9;t=54"#);
    assert_field(
        &response,
        "ratelimit-policy",
        r#""in";q=5;w=9, "outer";q=10;w=60"#,
    );
}

#[tokio::test]
async fn fields_of_another_draft_are_kept() {
    let draft7 = &[
        ("ratelimit", "limit=5, remaining=3, reset=9"),
        ("ratelimit-policy", "5;w=9"),
    ];
    assert_eq!(
        over(Draft11, draft7, "ratelimit").await.as_deref(),
        Some("limit=5, remaining=3, reset=9")
    );
    assert_eq!(
        over(Draft11, draft7, "ratelimit-policy").await.as_deref(),
        Some("5;w=9")
    );

    let draft11 = &[
        ("ratelimit", "\"in\";r=3;t=9"),
        ("ratelimit-policy", "\"in\";q=5;w=9"),
    ];
    assert_eq!(
        over(Draft7, draft11, "ratelimit").await.as_deref(),
        Some("\"in\";r=3;t=9")
    );
    assert_eq!(
        over(Draft7, draft11, "ratelimit-policy").await.as_deref(),
        Some("\"in\";q=5;w=9")
    );
}

#[tokio::test]
async fn quotas_after_the_limit_are_understood() {
    let envoy = &[
        ("x-ratelimit-limit", "5, 5;w=9;name=\"in\""),
        ("x-ratelimit-remaining", "3"),
        ("x-ratelimit-reset", "9"),
    ];
    let left = over(XRateLimit(Delta), envoy, "x-ratelimit-remaining").await;
    assert_eq!(left.as_deref(), Some("3"));
}

#[tokio::test]
async fn name_of_policy_is_not_repeated() {
    for (outer, inner, strict) in [(100, 10, 10), (10, 100, 10)] {
        let service = ServiceBuilder::new()
            .layer(layer(Draft11, "a, \"b\"", outer))
            .layer(layer(Draft11, "a, \"b\"", inner))
            .service(Inner::default());
        let response = answer_of(&service).await;
        let policy = format!(r#""a, \"b\"";q={strict};w=60"#);
        assert_eq!(
            field(&response, "ratelimit-policy"),
            Some(policy),
            "{outer} {inner}"
        );
        let left = format!(r#""a, \"b\"";r={};t=54"#, strict - 1);
        assert_eq!(field(&response, "ratelimit"), Some(left), "{outer} {inner}");
    }
}

#[tokio::test]
async fn quota_without_name_is_not_repeated() {
    let layer = |name| layer(Draft7, name, 10);
    let service = ServiceBuilder::new()
        .layer(layer("outer"))
        .layer(layer("inner"))
        .service(Inner::default());
    let response = answer_of(&service).await;
    assert_field(&response, "ratelimit-policy", "10;w=60");
}

#[tokio::test]
async fn names_of_inner_policies_are_kept() {
    let inner = &[
        ("ratelimit", "\"x\";r=3;t=9"),
        ("ratelimit", "\"y\";r=4;t=9, \"z\""),
        ("ratelimit-policy", "\"x\";q=5;w=9"),
    ];
    let left = over(Draft11, inner, "ratelimit").await;
    assert_eq!(
        left.as_deref(),
        Some("\"x\";r=3;t=9, \"y\";r=4;t=9, \"z\", \"outer\";r=9;t=54")
    );
    let policies = over(Draft11, inner, "ratelimit-policy").await;
    assert_eq!(
        policies.as_deref(),
        Some("\"x\";q=5;w=9, \"outer\";q=10;w=60")
    );
}
