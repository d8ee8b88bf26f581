//! Calls of a store that never answers.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use tokio::time::{advance, timeout};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::settle::{Reservation, by_handler};
use tower_quota::{HandleError, Key, RateLimitLayer, store::StoreTimeout};
use tower_quota_testkit::ScriptedAnswer;

use crate::fixture::ScriptedStore;
use crate::shared::{per_hour, policy_of};

const SECOND: Duration = Duration::from_secs(1);

/// Returns a layer with a timeout of a second, and the number of timeouts that it has reported.
fn layer(store: &ScriptedStore) -> (RateLimitLayer<ScriptedStore>, Arc<AtomicUsize>) {
    let timeouts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&timeouts);
    let policy = policy_of(per_hour("tokens", 100).settle(by_handler()));
    let layer = RateLimitLayer::new(store.clone(), policy)
        .store_timeout(SECOND)
        .on_store_error(move |error| {
            assert!(error.is::<StoreTimeout>());
            counted.fetch_add(1, Ordering::Relaxed);
        });
    (layer, timeouts)
}

/// Sends a request whose handler gives back what it cost.
async fn refunded_request(layer: &RateLimitLayer<ScriptedStore>) {
    let inner = service_fn(|request: Request<()>| {
        let reservation: Option<&Reservation> = request.extensions().get();
        reservation.into_iter().for_each(Reservation::refund);
        async { Ok::<_, Infallible>(Response::new(())) }
    });
    assert_eq!(
        layer
            .layer(inner)
            .oneshot(Request::new(()))
            .await
            .unwrap()
            .status(),
        200
    );
}

/// Lets the timeout of background calls pass.
async fn pass_a_minute() {
    tokio::task::yield_now().await;
    advance(SECOND * 60).await;
    tokio::task::yield_now().await;
}

#[tokio::test(start_paused = true)]
async fn handle_operation_ends_with_store_timeout() {
    let store = ScriptedStore::new();
    store.set_default(ScriptedAnswer::memory().held());
    let handle = layer(&store).0.handle();
    let peeked = timeout(SECOND * 2, handle.peek("tokens", &Key::EVERYONE))
        .await
        .unwrap();
    assert!(matches!(peeked, Err(HandleError::TimedOut(_))));
}

#[tokio::test(start_paused = true)]
async fn unanswered_settlement_ends_and_is_reported() {
    let store = ScriptedStore::new();
    store.push(ScriptedAnswer::memory());
    store.set_default(ScriptedAnswer::memory().held());
    let (layer, timeouts) = layer(&store);
    refunded_request(&layer).await;
    assert_eq!((store.held(), timeouts.load(Ordering::Relaxed)), (1, 0));
    pass_a_minute().await;
    assert_eq!((store.held(), timeouts.load(Ordering::Relaxed)), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn abandoned_check_ends_and_is_reported() {
    let store = ScriptedStore::new();
    store.set_default(ScriptedAnswer::memory().held());
    let (layer, timeouts) = layer(&store);
    refunded_request(&layer).await;
    assert_eq!((store.held(), timeouts.load(Ordering::Relaxed)), (1, 1));
    pass_a_minute().await;
    assert_eq!((store.held(), timeouts.load(Ordering::Relaxed)), (0, 2));
}
