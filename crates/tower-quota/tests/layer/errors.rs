//! Errors of the inner service are passed on unchanged.

use http::{Request, Response, StatusCode};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer};

#[tokio::test]
async fn errors_pass_through_unchanged() {
    let policy = Policy::new().limit(Limit::new("one", Quota::per_hour(1)));
    let failing = service_fn(async |_: Request<()>| Err::<Response<String>, &str>("inner"));
    let service = RateLimitLayer::new(MemoryStore::new(), policy).layer(failing);
    assert_eq!(
        service.clone().oneshot(Request::new(())).await.map(|_| ()),
        Err("inner")
    );
    // A refusal is a response.
    assert_eq!(
        service.oneshot(Request::new(())).await.unwrap().status(),
        StatusCode::TOO_MANY_REQUESTS
    );
}
