//! Requests that never get a response.

use std::convert::Infallible;
use std::future::pending;

use http::{Request, Response};
use tokio::time::timeout;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_quota::settle::{Reservation, Settle, only_failures};
use tower_quota::{Limit, Quota, RateLimit, RateLimitLayer};

use crate::fixture::{Call, ScriptedStore, StoreControl, slow_store};
use crate::shared::{answer_of, millis, per_hour, policy_of, secs};

fn limit() -> Limit {
    per_hour("limit", 100).cost(10)
}

fn limited<Svc: Clone>(
    store: &ScriptedStore,
    limit: Limit,
    inner: Svc,
) -> RateLimit<Svc, ScriptedStore> {
    RateLimitLayer::new(store.clone(), policy_of(limit)).layer(inner)
}

/// Returns the settlements of a request that is cancelled, fails, or panics.
///
/// Each of the three has its own store.
async fn settled(
    limit: impl Fn() -> Limit,
    settle_by: impl Fn(&Reservation) + Copy + Send + 'static,
) -> [Vec<Call>; 3] {
    let settle_request =
        move |request: &Request<()>| settle_by(request.extensions().get().unwrap());
    let stores = [
        ScriptedStore::new(),
        ScriptedStore::new(),
        ScriptedStore::new(),
    ];
    let stuck = service_fn(move |request: Request<()>| {
        settle_request(&request);
        pending::<Result<Response<()>, Infallible>>()
    });
    let cancelled = limited(&stores[0], limit(), stuck).oneshot(Request::new(()));
    assert!(timeout(millis(1), cancelled).await.is_err());

    let failing = service_fn(move |request: Request<()>| {
        settle_request(&request);
        async { Err::<Response<()>, _>("no") }
    });
    assert_eq!(
        limited(&stores[1], limit(), failing)
            .oneshot(Request::new(()))
            .await
            .unwrap_err(),
        "no"
    );

    let panicking = service_fn(move |request: Request<()>| async move {
        settle_request(&request);
        if request.uri() == "/" {
            std::panic::resume_unwind(Box::new("a panic without its message"));
        }
        Ok::<_, Infallible>(Response::new(()))
    });
    let service = limited(&stores[2], limit(), panicking);
    assert!(
        catch_unwind(service.oneshot(Request::new(())))
            .await
            .is_err()
    );
    stores.map(|store| store.settled())
}

/// Polls a future that may panic.
async fn catch_unwind<F: Future>(future: F) -> std::thread::Result<F::Output> {
    let mut future = Box::pin(future);
    std::future::poll_fn(move |cx| {
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(panic)),
        }
    })
    .await
}

fn same(each: &[Call]) -> [Vec<Call>; 3] {
    [each.to_vec(), each.to_vec(), each.to_vec()]
}

#[tokio::test(start_paused = true)]
async fn abandoned_request_keeps_estimate() {
    // This also holds if only failures count: a client that disconnects gets no free attempt.
    assert_eq!(
        settled(|| limit().settle(only_failures()), |_| {}).await,
        same(&[])
    );
}

#[tokio::test(start_paused = true)]
async fn abandoned_request_follows_limits_choice() {
    assert_eq!(
        settled(|| limit().on_abandoned(Settle::Refund), |_| {}).await,
        same(&[("refund", vec![10])])
    );
    let limits = [
        || {
            limit()
                .on_abandoned(Settle::Cost(1))
                .settle(only_failures())
        },
        || {
            limit()
                .settle(only_failures())
                .on_abandoned(Settle::Cost(1))
        },
    ];
    for limit in limits {
        assert_eq!(settled(limit, |_| {}).await, same(&[("refund", vec![9])]));
    }
}

#[tokio::test(start_paused = true)]
async fn handler_settlement_counts_when_abandoned() {
    let limit = || limit().on_abandoned(Settle::Refund);
    assert_eq!(
        settled(limit, |reservation| _ = reservation.settle("limit", 12)).await,
        same(&[("charge", vec![2])])
    );
    assert_eq!(settled(limit, Reservation::keep).await, same(&[]));
}

#[tokio::test]
async fn cancelled_check_refunds_everything() {
    let inner = || service_fn(|_: Request<()>| pending::<Result<Response<()>, Infallible>>());
    let waits = || limit().max_wait(secs(1));
    for (limit, store) in [
        (limit().settle(only_failures()), ScriptedStore::new()),
        (limit().settle(only_failures()), slow_store()),
        (waits(), ScriptedStore::new()),
        (waits(), slow_store()),
    ] {
        let mut service = limited(&store, limit, inner());
        drop(service.call(Request::new(())));
        store.until_settled(&[("refund", &[10])]).await;
    }
    let store = slow_store();
    let mut asked =
        Box::pin(limited(&store, limit().settle(only_failures()), inner()).call(Request::new(())));
    assert!(polled_once(&mut asked).await.is_none());
    drop(asked);
    store.until_settled(&[("refund", &[10])]).await;
}

#[tokio::test]
async fn cancelled_refusal_refunds_nothing() {
    let store = slow_store();
    let inner = service_fn(|_: Request<()>| pending::<Result<Response<()>, Infallible>>());
    let mut service = limited(&store, limit().cost(60).settle(only_failures()), inner);
    let first = service.call(Request::new(()));
    drop(service.call(Request::new(())));
    drop(first);
    store.until_settled(&[("refund", &[60])]).await;
}

/// Polls once.
async fn polled_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|cx| match std::pin::Pin::new(&mut *future).poll(cx) {
        std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn delivered_response_is_not_abandoned() {
    let store = ScriptedStore::new();
    let inner = service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(())) });
    limited(&store, limit().on_abandoned(Settle::Refund), inner)
        .oneshot(Request::new(()))
        .await
        .unwrap();
    assert!(store.settled().is_empty());
}

#[tokio::test(start_paused = true)]
async fn refused_request_settles_nothing() {
    let store = ScriptedStore::new();
    let inner = service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(())) });
    let service = limited(&store, limit().cost(60).on_abandoned(Settle::Refund), inner);
    assert_eq!(answer_of(&service).await.status(), 200);
    assert_eq!(answer_of(&service).await.status(), 429);
    assert_eq!(
        (store.settled(), store.left("limit", Quota::per_hour(100))),
        (vec![], 40)
    );
}
