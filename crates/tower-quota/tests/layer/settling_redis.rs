//! Settlements and refunds of turns with a real Redis, which does not answer at once.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use http::{Request, Response};
use tokio::time::timeout;
use tower::{Layer, Service, service_fn};
use tower_quota::settle::{Reservation, by_handler};
use tower_quota::{Key, Limit, Quota, RateLimitLayer, RedisStore, Store, store::Charge};
use tower_quota_dev::RedisServer;

use crate::fixture::Inner;
use crate::shared::{answer_of, policy_of, secs};

async fn store(redis: &RedisServer, prefix: &str) -> RedisStore {
    // A healthy server on a busy machine must not count as unavailable.
    let options = RedisStore::options().prefix(prefix).deadline(secs(2));
    options.connect(&redis.url()).await.unwrap()
}

/// Waits until this number of units is left.
async fn until_left(store: &RedisStore, limit: &'static str, quota: Quota, expected: u64) {
    let left = async || {
        store
            .check(&[Charge::new(limit, &quota, &Key::EVERYONE).cost(0)])
            .await
            .unwrap()
            .statuses()[0]
            .remaining()
    };
    let reached = timeout(secs(5), async { while left().await != expected {} }).await;
    assert!(
        reached.is_ok(),
        "{} left instead of {expected}",
        left().await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_settled() {
    let redis = RedisServer::start();
    let store = store(&redis, "settled").await;
    let day = Quota::per_day(100);
    for (quota, limit) in [
        (day, "bucket"),
        (day.sliding_log(), "log"),
        (day.fixed_window().from_first_request(), "window"),
        (
            Quota::new(100, secs(366 * 86_400)).sliding_window(),
            "sliding",
        ),
    ] {
        for (actual, left) in [(4, 96), (0, 96), (30, 66), (u64::MAX, 0)] {
            let inner = service_fn(move |request: Request<()>| {
                assert!(
                    request
                        .extensions()
                        .get::<Reservation>()
                        .unwrap()
                        .settle(limit, actual)
                );
                async { Ok::<_, Infallible>(Response::new(())) }
            });
            let policy = policy_of(Limit::new(limit, quota).cost(10).settle(by_handler()));
            let service = RateLimitLayer::new(store.clone(), policy).layer(inner);
            assert_eq!(answer_of(&service).await.status(), 200);
            until_left(&store, limit, quota, left).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_waiting_request_refunds_its_turn() {
    let redis = RedisServer::start();
    let store = store(&redis, "turns").await;
    let quota = Quota::per_hour(1).leaky_bucket().queue(10);
    let policy = policy_of(Limit::new("queue", quota).max_wait(secs(86_400)));
    let layer = RateLimitLayer::new(store.clone(), policy);
    let (handle, mut service) = (layer.handle(), layer.layer(Inner::default()));
    answer_of(&service).await;
    {
        let mut waiting = pin!(service.call(Request::new(())));
        // When the request is in the queue, the store has answered.
        poll_fn(|cx| match waiting.as_mut().poll(cx) {
            Poll::Pending if handle.waiting() == 1 => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
            Poll::Ready(_) => panic!("it should wait an hour"),
        })
        .await;
        until_left(&store, "queue", quota, 8).await;
    }
    until_left(&store, "queue", quota, 9).await;
    assert_eq!(service.get_ref().calls(), 1);
}
