//! The called service was polled ready, and a waiting request holds no readiness.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};
use tower_quota::{
    Decision, Limiter, MemoryStore, Quota, Store, ThrottleLayer,
    store::{Charge, Operation},
    throttle::ThrottleError,
};
use tower_quota_testkit::ScriptedStore;

use crate::fixture::{Order, Printer, SECOND, TICK, limiter, memory, poll, user};

/// A service whose clones must be polled ready themselves, and that can be busy or broken.
#[derive(Debug, Default)]
struct StrictService {
    is_ready: bool,
    is_busy: Arc<AtomicBool>,
    is_broken: Arc<AtomicBool>,
}

impl Clone for StrictService {
    fn clone(&self) -> Self {
        Self {
            is_ready: false,
            is_busy: Arc::clone(&self.is_busy),
            is_broken: Arc::clone(&self.is_broken),
        }
    }
}

impl Service<Order> for StrictService {
    type Response = Order;
    type Error = &'static str;
    type Future = Ready<Result<Order, &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Poll::Ready(Err("broken"));
        }
        self.is_ready = !self.is_busy.load(Ordering::Relaxed);
        if self.is_ready {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    fn call(&mut self, order: Order) -> Self::Future {
        assert!(
            std::mem::take(&mut self.is_ready),
            "called without having been polled ready"
        );
        ready(Ok(order))
    }
}

async fn calls_are_ready(store: impl Store + Clone) {
    let limiter = Limiter::new(store, "limit", Quota::per_second(1).burst(2));
    let mut service = ThrottleLayer::new(limiter, user).layer(StrictService::default());
    for _ in 0..4 {
        service
            .ready()
            .await
            .unwrap()
            .call(Order::of("ann"))
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn called_service_was_polled_ready() {
    calls_are_ready(memory()).await;
    calls_are_ready(ScriptedStore::with_clock(
        tower_quota_testkit::ManualClock::default(),
    ))
    .await;
}

#[tokio::test(start_paused = true)]
async fn waiting_request_holds_no_readiness() {
    let throttle = ThrottleLayer::new(limiter(Quota::per_minute(1)), user);
    let service = ServiceBuilder::new()
        .layer(throttle)
        .concurrency_limit(1)
        .service(Printer::default());
    service.clone().oneshot(Order::of("ann")).await.unwrap();
    let mut of_ann = service.clone();
    let mut waiting = Box::pin(of_ann.ready().await.unwrap().call(Order::of("ann")));
    assert!(poll(waiting.as_mut()).is_pending());
    let of_bob = tokio::time::timeout(SECOND, service.oneshot(Order::of("bob")));
    of_bob.await.expect("bob need not wait for ann").unwrap();
    waiting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn refused_request_holds_no_readiness() {
    let throttle = ThrottleLayer::new(limiter(Quota::per_minute(1)), user).max_wait(Duration::ZERO);
    let service = ServiceBuilder::new()
        .layer(throttle)
        .concurrency_limit(1)
        .service(Printer::default());
    let mut of_ann = service.clone();
    of_ann
        .ready()
        .await
        .unwrap()
        .call(Order::of("ann"))
        .await
        .unwrap();
    of_ann
        .ready()
        .await
        .unwrap()
        .call(Order::of("ann"))
        .await
        .unwrap_err();
    // The service of the refused request still exists.
    let of_bob = tokio::time::timeout(SECOND, service.oneshot(Order::of("bob")));
    of_bob.await.expect("a refusal takes no place").unwrap();
    drop(of_ann);
}

#[tokio::test(start_paused = true)]
async fn busy_service_takes_no_turn() {
    let limiter = limiter(Quota::per_hour(10));
    let service = StrictService::default();
    service.is_busy.store(true, Ordering::Relaxed);
    let mut throttled = ThrottleLayer::new(limiter.clone(), user).layer(service);
    for _ in 0..10 {
        assert!(poll(std::pin::pin!(throttled.ready())).is_pending());
    }
    assert_eq!(limiter.check_now("ann").remaining(), 9);
}

#[tokio::test(start_paused = true)]
async fn turn_before_readiness_is_refunded() {
    for is_broken in [false, true] {
        let limiter = limiter(Quota::per_second(1).burst(1));
        let service = StrictService::default();
        let (busy, broken) = (Arc::clone(&service.is_busy), Arc::clone(&service.is_broken));
        let mut throttled = ThrottleLayer::new(limiter.clone(), user).layer(service);
        throttled
            .ready()
            .await
            .unwrap()
            .call(Order::of("ann"))
            .await
            .unwrap();
        let mut waiting = Box::pin(throttled.ready().await.unwrap().call(Order::of("ann")));
        assert!(poll(waiting.as_mut()).is_pending());
        busy.store(true, Ordering::Relaxed);
        broken.store(is_broken, Ordering::Relaxed);
        tokio::time::advance(SECOND + TICK).await;
        // Its turn has come, but the service is not ready.
        match poll(waiting.as_mut()) {
            Poll::Pending => assert!(!is_broken),
            Poll::Ready(result) => {
                assert!(is_broken && matches!(result, Err(ThrottleError::Inner("broken"))))
            }
        }
        drop(waiting);
        assert!(limiter.check_now("ann").is_allowed());
    }
}

/// A store that answers at the second poll, and records which charges were prepared for a refund.
#[derive(Clone)]
struct SlowStore {
    memory: MemoryStore,
    prepared: Arc<Mutex<Vec<bool>>>,
}

impl Store for SlowStore {
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Decision, Infallible>> + Send>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        self.prepared
            .lock()
            .unwrap()
            .extend(charges.iter().map(Charge::is_refundable));
        let answer = self.memory.apply(operation, charges);
        Box::pin(async move {
            tokio::task::yield_now().await;
            answer.await
        })
    }
}

/// Asserts this for a turn that came at once although the request would have waited.
#[tokio::test(start_paused = true)]
async fn immediate_turn_is_refunded_as_charged() {
    let store = SlowStore {
        memory: memory(),
        prepared: Arc::default(),
    };
    let prepared = Arc::clone(&store.prepared);
    let service = StrictService::default();
    let busy = Arc::clone(&service.is_busy);
    let mut throttled =
        ThrottleLayer::new(Limiter::new(store, "limit", Quota::per_second(1)), user).layer(service);
    let mut waiting = Box::pin(throttled.ready().await.unwrap().call(Order::of("ann")));
    busy.store(true, Ordering::Relaxed);
    assert!(poll(waiting.as_mut()).is_pending());
    drop(waiting);
    assert_eq!(*prepared.lock().unwrap(), [true, true]);
}

#[tokio::test]
async fn called_request_holds_no_service() {
    let clones = Arc::new(());
    let held = Arc::clone(&clones);
    let inner = service_fn(move |order: Order| {
        let _ = &held;
        ready(Ok::<_, Infallible>(order))
    });
    let mut service = ThrottleLayer::new(limiter(Quota::per_second(1)), user).layer(inner);
    let call = service.call(Order::of("ann"));
    assert_eq!(
        Arc::strong_count(&clones),
        2,
        "one is held by the test and one by the service"
    );
    call.await.unwrap();
}
