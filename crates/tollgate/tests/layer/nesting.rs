//! Limiters behind one another.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use std::convert::Infallible;
use tollgate::{Decision, Limit, MemoryStore, Policy, Quota, RateLimitLayer};
use tollgate_testkit::ManualClock;
use tower::{ServiceBuilder, ServiceExt, service_fn};

use crate::fixture::{Inner, field};

fn layer(name: &'static str, per_minute: u64) -> RateLimitLayer<MemoryStore> {
    let store = MemoryStore::with_clock(10, ManualClock::default());
    RateLimitLayer::new(store, Policy::new().limit(Limit::new(name, Quota::per_minute(per_minute))))
}

#[tokio::test]
async fn lists_grow_and_the_stricter_x_fields_stay() {
    for (outer, inner) in [(100, 10), (10, 100)] {
        let service =
            ServiceBuilder::new().layer(layer("outer", outer)).layer(layer("inner", inner)).service(Inner::default());
        let response = service.oneshot(Request::new(())).await.unwrap();
        let policies = format!(r#""inner";q={inner};w=60, "outer";q={outer};w=60"#);
        assert_eq!(field(&response, "ratelimit-policy"), Some(policies));
        let left = field(&response, "ratelimit").unwrap();
        assert!(left.contains(&format!(r#""inner";r={}"#, inner - 1)), "{left}");
        assert!(left.contains(&format!(r#""outer";r={}"#, outer - 1)), "{left}");
        assert_eq!(field(&response, "x-ratelimit-limit").as_deref(), Some("10"));
        assert_eq!(field(&response, "x-ratelimit-remaining").as_deref(), Some("9"));
    }
}

#[tokio::test]
async fn an_inner_refusal_keeps_its_answer_and_its_decision() {
    let service = ServiceBuilder::new().layer(layer("outer", 100)).layer(layer("inner", 1)).service(Inner::default());
    service.clone().oneshot(Request::new(())).await.unwrap();
    let response = service.oneshot(Request::new(())).await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(&response, "retry-after").as_deref(), Some("60"));
    assert_eq!(field(&response, "x-ratelimit-remaining").as_deref(), Some("0"));
    let decision = response.extensions().get::<Decision>().unwrap();
    assert_eq!(decision.binding().unwrap().name.as_str(), "inner");
}

#[tokio::test]
async fn a_foreign_field_that_is_no_number_is_replaced() {
    let foreign = service_fn(async |_: Request<()>| {
        let response = Response::builder().header("x-ratelimit-remaining", "plenty").header("x-ratelimit-limit", "?");
        Ok::<_, Infallible>(response.body(Full::<Bytes>::default()).unwrap())
    });
    let service = ServiceBuilder::new().layer(layer("outer", 10)).service(foreign);
    let response = service.oneshot(Request::new(())).await.unwrap();
    assert_eq!(field(&response, "x-ratelimit-remaining").as_deref(), Some("9"));
    assert_eq!(field(&response, "x-ratelimit-limit").as_deref(), Some("10"));
}
