//! Errors of the inner service are passed on unchanged.

use http::{Request, Response};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{MemoryStore, RateLimitLayer};

use crate::shared::{answer_of, per_hour, policy_of};

#[tokio::test]
async fn errors_pass_through_unchanged() {
    let policy = policy_of(per_hour("one", 1));
    let failing = service_fn(async |_: Request<()>| Err::<Response<String>, &str>("inner"));
    let service = RateLimitLayer::new(MemoryStore::new(), policy).layer(failing);
    assert_eq!(
        service.clone().oneshot(Request::new(())).await.map(|_| ()),
        Err("inner")
    );
    // A refusal is a response.
    assert_eq!(answer_of(&service).await.status(), 429);
}
