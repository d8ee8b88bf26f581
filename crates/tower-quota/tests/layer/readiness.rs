//! The called service was polled ready, and a waiting request holds no readiness.

use std::convert::Infallible;
use std::fmt::Debug;
use std::future::{Future, Ready, poll_fn, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use tokio::time::timeout;
use tower::buffer::Buffer;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, Store, key};
use tower_quota_testkit::ManualClock;

use crate::fixture::{Inner, Limited, slow_store};
use crate::shared::{answer_to, per_minute, policy_of, secs};

/// A service whose clones must be polled ready themselves before a call.
#[derive(Default)]
struct StrictService {
    ready: bool,
}

impl Clone for StrictService {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Service<Request<()>> for StrictService {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        assert!(
            std::mem::take(&mut self.ready),
            "called without having been polled ready"
        );
        ready(Ok(Response::new(String::new())))
    }
}

async fn calls_are_ready(store: impl Store, policy: Policy) {
    let mut service = RateLimitLayer::new(store, policy).layer(StrictService::default());
    for _ in 0..3 {
        let service = service.ready().await.unwrap();
        let response = service.call(Request::new(())).await.unwrap();
        assert_eq!(response.status(), 200);
    }
}

#[tokio::test]
async fn called_service_was_polled_ready() {
    let limits = || policy_of(per_minute("roomy", 100));
    calls_are_ready(MemoryStore::new(), limits()).await;
    calls_are_ready(slow_store(), limits()).await;
    calls_are_ready(MemoryStore::new(), Policy::new()).await;
}

#[test]
fn memory_store_calls_service_without_clone() {
    let policy = || policy_of(per_minute("roomy", 100));
    let calls_at_once = |layer: RateLimitLayer<MemoryStore>| {
        let (calls, clones) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
        let (counted, held) = (Arc::clone(&calls), Arc::clone(&clones));
        let inner = service_fn(move |_: Request<()>| {
            let _ = &held;
            counted.fetch_add(1, Ordering::Relaxed);
            ready(Ok::<_, Infallible>(Response::new(String::new())))
        });
        let mut service = layer.layer(inner);
        let response = service.call(Request::new(()));
        // One is held by the test and one by the service.
        assert_eq!(Arc::strong_count(&clones), 2);
        drop(response);
        calls.load(Ordering::Relaxed)
    };
    assert_eq!(
        calls_at_once(RateLimitLayer::new(MemoryStore::new(), policy())),
        1
    );
    assert_eq!(
        calls_at_once(RateLimitLayer::new(MemoryStore::new(), policy()).headers([])),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn called_service_is_ready_after_wait() {
    let queue = Quota::per_second(10).leaky_bucket().queue(9);
    calls_are_ready(slow_store(), policy_of(Limit::new("queue", queue))).await;
}

/// Returns a policy with a queue of one request an hour for each user.
///
/// It is in front of a service that takes one request at a time.
fn queue_before_one_place() -> Policy {
    let user = key::from_fn("user", |head| {
        head.extensions().get::<&'static str>().copied()
    });
    let quota = Quota::per_hour(1).leaky_bucket().queue(10);
    policy_of(Limit::new("queue", quota).by(user).max_wait(secs(86_400)))
}

fn request_of(user: &'static str) -> Request<()> {
    let mut request = Request::new(());
    request.extensions_mut().insert(user);
    request
}

/// Asserts that a request of bob is admitted while a request of ann waits.
async fn assert_others_proceed<S, B>(inner: S)
where
    S: Service<Request<()>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Debug,
    S::Future: Send,
{
    let layer = RateLimitLayer::new(MemoryStore::new(), queue_before_one_place());
    let service = layer.layer(inner);
    answer_to(&service, request_of("ann")).await;
    let mut of_ann = service.clone();
    let mut waiting = Box::pin(of_ann.ready().await.unwrap().call(request_of("ann")));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(waiting.as_mut().poll(&mut cx).is_pending());
    let of_bob = timeout(secs(1), service.oneshot(request_of("bob"))).await;
    // Bob need not wait for ann.
    assert_eq!(of_bob.unwrap().unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn waiting_client_does_not_block_others() {
    let inner = Inner::default();
    assert_others_proceed(ConcurrencyLimit::new(inner.clone(), 1)).await;
    assert_others_proceed(Buffer::new(inner, 1)).await;
}

#[tokio::test]
async fn being_ready_takes_no_quota() {
    let mut limited = Limited::new(policy_of(per_minute("one", 1)));
    for _ in 0..100 {
        poll_fn(|cx| limited.service.poll_ready(cx)).await.unwrap();
    }
    assert_eq!(limited.get().await.status(), 200);
    assert_eq!(limited.get().await.status(), 429);
}

#[tokio::test]
async fn busy_inner_service_is_waited_for() {
    #[derive(Clone)]
    struct Busy;

    impl Service<Request<()>> for Busy {
        type Response = Response<String>;
        type Error = Infallible;
        type Future = Ready<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Pending
        }

        fn call(&mut self, _: Request<()>) -> Self::Future {
            panic!("it was not ready")
        }
    }

    let mut service = RateLimitLayer::new(
        MemoryStore::with_clock(1, ManualClock::default()),
        policy_of(per_minute("one", 1)),
    )
    .layer(Busy);
    assert!(
        service
            .poll_ready(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
}
