//! Tests the figures of a store, and closing a store.

use std::num::NonZeroUsize;
use std::time::Duration;

use tower_quota_core::{Charge, Key, Quota, Store};
use tower_quota_dev::{Fault, FaultProxy, RedisServer};
use tower_quota_redis::RedisStoreError;

use crate::common::{Asked, HOUR, TEST_TIMEOUT, ask, options, store_on, until_answered, user};

const ONE: Quota = Quota::per_hour(1);
const SHORT: Duration = Duration::from_millis(100);

async fn pass_turns() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn stats_count_decisions_calls_and_errors() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let asked: Vec<Asked> = (0..500)
        .map(|i| ask(&store, &format!("user {i}")))
        .collect();
    for asked in asked {
        asked.await.unwrap().unwrap();
    }
    let stats = store.stats();
    assert_eq!(
        (
            stats.decisions,
            stats.closed_partitions,
            stats.open_partitions
        ),
        (500, 1, 0)
    );
    assert!((4..=7).contains(&stats.calls), "{stats:?}");
    assert_eq!(
        (stats.queued, stats.calls_under_way, stats.errors),
        (0, 0, Default::default())
    );

    server.command("CLIENT PAUSE 60000 WRITE").unwrap();
    // After few calls, the window admits 128 decisions.
    let asked: Vec<_> = (0..130)
        .map(|i| ask(&store, &format!("user {i}")))
        .collect();
    pass_turns().await;
    while store.stats().queued > 2 {
        pass_turns().await;
    }
    assert!(store.stats().calls_under_way > 0);
    server.command("CLIENT UNPAUSE").unwrap();
    for asked in asked {
        asked.await.unwrap().unwrap();
    }
    let users: Vec<_> = (0..33).map(|i| user(&i.to_string())).collect();
    let charges: Vec<_> = users
        .iter()
        .map(|user| Charge::new("hour", &HOUR, user))
        .collect();
    assert!(store.check(&charges).await.is_err());
    assert_eq!(store.stats().errors.other, 1);
}

#[tokio::test]
async fn close_waits_for_calls_under_way() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    server.command("CLIENT PAUSE 60000 WRITE").unwrap();
    let asked: Vec<Asked> = (0..300)
        .map(|i| ask(&store, &format!("user {i}")))
        .collect();
    pass_turns().await;
    assert!(!store.close(SHORT).await, "nothing is answered");
    let error = store
        .check(&[Charge::new("hour", &HOUR, &Key::EVERYONE)])
        .await
        .unwrap_err();
    assert!(
        matches!(error, RedisStoreError::Closed) && !error.is_transient(),
        "{error:?}"
    );
    let closing = tokio::spawn({
        let store = store.clone();
        async move { store.close(TEST_TIMEOUT).await }
    });
    pass_turns().await;
    assert!(!closing.is_finished());
    server.command("CLIENT UNPAUSE").unwrap();
    assert!(closing.await.unwrap());
    for asked in asked {
        assert!(asked.is_finished() || asked.await.unwrap().is_ok());
    }
    assert_eq!(store.stats().errors.other, 1);
}

#[tokio::test]
async fn close_waits_for_refund_not_yet_polled() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let user = user("ann");
    let charges = [Charge::new("hour", &HOUR, &user)];
    let refund = store.check(&charges).await.unwrap().refund().unwrap();
    let refunding = store.apply(refund, &charges);
    assert!(!store.close(SHORT).await, "the refund is not sent");
    assert_eq!(refunding.await.unwrap().statuses()[0].remaining(), 1_000);
    assert!(store.close(TEST_TIMEOUT).await);
}

// The caller of a decision in two parts leaves while the second part is in flight.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn close_waits_for_refunds_of_abandoned_decisions() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let partitions = NonZeroUsize::new(64).unwrap();
    let slow = options()
        .partitions(partitions)
        .connect(&proxy.url())
        .await
        .unwrap();
    let direct = options()
        .partitions(partitions)
        .connect(&server.url())
        .await
        .unwrap();
    until_answered(&slow).await;
    let users: Vec<Key<'_>> = (0..8).map(|i| user(&i.to_string())).collect();
    let charges: Vec<Charge<'_>> = users
        .iter()
        .map(|user| Charge::new("hour", &ONE, user))
        .collect();
    proxy.inflict(Fault::Delay(Duration::from_millis(20)));
    let asked = tokio::spawn(slow.check(&charges));
    while direct
        .check(&[charges[0].cost(0)])
        .await
        .unwrap()
        .statuses()[0]
        .remaining()
        == 1
        && direct
            .check(&[charges[7].cost(0)])
            .await
            .unwrap()
            .statuses()[0]
            .remaining()
            == 1
    {
        tokio::task::yield_now().await;
    }
    asked.abort();
    assert!(slow.close(TEST_TIMEOUT).await);
    for charge in &charges {
        assert_eq!(
            direct.check(&[charge.cost(0)]).await.unwrap().statuses()[0].remaining(),
            1
        );
    }
}
