//! Holds of requests when a store loses data, fails, or restarts.

use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::response::Response;
use http::Request;
use tokio::task::JoinHandle;
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::store::{Charge, Operation};
use tower_quota::{
    Key, Limit, MemoryStore, OnStoreFailure, Quota, RateLimitLayer, RedisStore, Store,
};
use tower_quota_dev::{RedisCluster, RedisSentinel, RedisServer};
use tower_quota_testkit::{ManualClock, ScriptedAnswer};

use crate::fixture::{ScriptedStore, failing_store};
use crate::holds::{left, until_free};
use crate::shared::{answer_to, millis, policy_of, secs};

const STREAMS: Quota = Quota::concurrent(2);

/// Starts requests that never end.
async fn started<S: Store + Clone>(
    layer: &RateLimitLayer<S>,
    requests: usize,
) -> Vec<JoinHandle<Result<Response, Infallible>>> {
    let begun = Arc::new(tokio::sync::Semaphore::new(0));
    let beginning = Arc::clone(&begun);
    let never = service_fn(move |_: Request<Body>| {
        beginning.add_permits(1);
        std::future::pending::<Result<Response, Infallible>>()
    });
    let service = layer.layer(never);
    let mut running = Vec::new();
    for _ in 0..requests {
        let request = service.clone().oneshot(Request::new(Body::empty()));
        let request = async { request.await.map(|response| response.map(Body::new)) };
        running.push(tokio::spawn(request));
    }
    let count = u32::try_from(requests).unwrap();
    let _all = begun.acquire_many(count).await.unwrap();
    running
}

fn end(running: Vec<JoinHandle<Result<Response, Infallible>>>) {
    running.iter().for_each(JoinHandle::abort);
}

fn lose<S: Store>(store: &S) -> impl Future<Output = ()> + use<S> {
    let everyone = Key::EVERYONE;
    let reset = store.apply(
        Operation::Reset,
        &[Charge::new("streams", &STREAMS, &everyone)],
    );
    async {
        reset.await.unwrap();
    }
}

async fn pass(clocks: &[&ManualClock], seconds: u64) {
    for _ in 0..seconds {
        for clock in clocks {
            clock.advance(secs(1));
        }
        tokio::time::advance(secs(1)).await;
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
    }
}

/// The errors that the layer reported.
type Errors = Arc<Mutex<Vec<String>>>;

fn layer_of(store: &ScriptedStore) -> (RateLimitLayer<ScriptedStore>, Errors) {
    let errors = Errors::default();
    let reported = Arc::clone(&errors);
    let layer = RateLimitLayer::new(store.clone(), policy_of(Limit::new("streams", STREAMS)))
        .on_store_error(move |error| reported.lock().unwrap().push(error.to_string()));
    (layer, errors)
}

#[tokio::test(start_paused = true)]
async fn lost_hold_of_running_request_is_counted_again() {
    let store = ScriptedStore::new();
    let (layer, errors) = layer_of(&store);
    let running = started(&layer, 2).await;
    pass(&[store.clock()], 1).await;
    lose(store.memory()).await;
    pass(&[store.clock()], 20).await;
    assert_eq!(left(store.memory(), "streams", STREAMS).await, 0);
    let lost = "the store has lost units in use of the limit \"streams\", so they are taken again";
    assert_eq!(*errors.lock().unwrap(), [lost, lost]);
    pass(&[store.clock()], 120).await;
    assert_eq!(left(store.memory(), "streams", STREAMS).await, 0);
    end(running);
    pass(&[store.clock()], 1).await;
    assert_eq!(left(store.memory(), "streams", STREAMS).await, 2);
}

#[tokio::test(start_paused = true)]
async fn hold_of_changed_limit_is_not_taken_again() {
    let store = ScriptedStore::new();
    let (layer, errors) = layer_of(&store);
    let running = started(&layer, 1).await;
    let minute = Quota::per_minute(5);
    layer
        .handle()
        .replace_policy(policy_of(Limit::new("streams", minute)));
    let service = layer.layer(service_fn(|_: Request<Body>| async {
        Ok::<_, Infallible>(Response::new(Body::empty()))
    }));
    let answer = answer_to(&service, Request::new(Body::empty())).await;
    assert_eq!(answer.status(), 200);
    pass(&[store.clock()], 120).await;
    assert_eq!(left(store.memory(), "streams", minute).await, 5);
    assert!(errors.lock().unwrap().is_empty());
    end(running);
    pass(&[store.clock()], 1).await;
    assert_eq!(left(store.memory(), "streams", minute).await, 5);
}

#[tokio::test(start_paused = true)]
async fn failed_release_of_request_is_repeated() {
    let store = ScriptedStore::new();
    let (layer, errors) = layer_of(&store);
    let running = started(&layer, 2).await;
    store.set_default(ScriptedAnswer::error("down"));
    end(running);
    pass(&[store.clock()], 5).await;
    assert_eq!(left(store.memory(), "streams", STREAMS).await, 0);
    assert!(errors.lock().unwrap().len() >= 2);
    store.set_default(ScriptedAnswer::memory());
    pass(&[store.clock()], 1).await;
    assert_eq!(left(store.memory(), "streams", STREAMS).await, 2);
}

#[tokio::test(start_paused = true)]
async fn local_hold_is_counted_again() {
    let clock = ManualClock::default();
    let local = MemoryStore::with_clock(100, clock.clone());
    let policy = policy_of(Limit::new("streams", STREAMS)).on_store_failure(OnStoreFailure::Local);
    let layer = RateLimitLayer::new(failing_store(), policy).local_store(local.clone());
    let running = started(&layer, 1).await;
    pass(&[&clock], 1).await;
    lose(&local).await;
    pass(&[&clock], 20).await;
    assert_eq!(left(&local, "streams", STREAMS).await, 1);
    pass(&[&clock], 120).await;
    assert_eq!(left(&local, "streams", STREAMS).await, 1);
    end(running);
    pass(&[&clock], 1).await;
    assert_eq!(left(&local, "streams", STREAMS).await, 2);
}

#[tokio::test(start_paused = true)]
async fn local_hold_returns_to_replaced_local_store() {
    let (old, new) = (MemoryStore::new(), MemoryStore::new());
    let policy = policy_of(Limit::new("streams", STREAMS)).on_store_failure(OnStoreFailure::Local);
    let layer = RateLimitLayer::new(failing_store(), policy).local_store(old.clone());
    let first = started(&layer, 1).await;
    let layer = layer.local_store(new.clone());
    let second = started(&layer, 1).await;
    end(first);
    tokio::task::yield_now().await;
    assert_eq!(left(&old, "streams", STREAMS).await, 2);
    assert_eq!(left(&new, "streams", STREAMS).await, 1);
    end(second);
    tokio::task::yield_now().await;
    assert_eq!(left(&new, "streams", STREAMS).await, 2);
}

#[tokio::test(start_paused = true)]
async fn unanswered_renewal_fails_after_store_timeout() {
    let store = ScriptedStore::new();
    let (layer, errors) = layer_of(&store);
    let layer = layer.store_timeout(secs(1));
    let running = started(&layer, 1).await;
    store.set_default(ScriptedAnswer::memory().held());
    pass(&[store.clock()], 22).await;
    let late = "the store has not answered within 1s";
    assert_eq!(*errors.lock().unwrap(), [late]);
    end(running);
}

/// Empties the servers while two requests run.
async fn counts_again(store: RedisStore, empty: impl Fn()) {
    let streams = STREAMS.ttl(millis(1_200));
    let layer = RateLimitLayer::new(store.clone(), policy_of(Limit::new("streams", streams)));
    let running = started(&layer, 2).await;
    empty();
    assert_eq!(left(&store, "streams", streams).await, 2);
    until_free(&store, 0).await;
    end(running);
    until_free(&store, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn emptied_redis_counts_running_requests_again() {
    let server = RedisServer::start();
    let store = RedisStore::options().deadline(secs(5));
    let store = store.connect(&server.url()).await.unwrap();
    counts_again(store, || drop(server.command("FLUSHALL").unwrap())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn emptied_cluster_counts_running_requests_again() {
    let servers = RedisCluster::start();
    let url = format!("redis+cluster://127.0.0.1:{}", servers.node(0).port());
    let store = RedisStore::options().deadline(secs(5));
    let store = store.connect(&url).await.unwrap();
    let empty = || {
        for primary in 0..3 {
            servers.node(primary).command("FLUSHALL").unwrap();
        }
    };
    counts_again(store, empty).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_end_in_an_outage_return_their_units() {
    let server = RedisServer::start();
    let store = RedisStore::options().deadline(millis(100));
    let store = store.connect(&server.url()).await.unwrap();
    let layer = RateLimitLayer::new(store.clone(), policy_of(Limit::new("streams", STREAMS)));
    let running = started(&layer, 2).await;
    server.pause();
    // Unanswered calls open the breaker.
    let everyone = Key::EVERYONE;
    let check = [Charge::new("other", &STREAMS, &everyone).cost(0)];
    while !matches!(
        store.check(&check).await,
        Err(tower_quota::redis::RedisStoreError::BreakerOpen { .. })
    ) {}
    end(running);
    while store.stats().errors.breaker_open < 3 {
        tokio::task::yield_now().await;
    }
    server.resume();
    until_answered(&store).await;
    until_free(&store, 2).await;
}

/// Waits until the store answers.
async fn until_answered(store: &RedisStore) {
    let everyone = Key::EVERYONE;
    let check = [Charge::new("other", &STREAMS, &everyone).cost(0)];
    let answered = async {
        // Calls fail until the breaker closes.
        while store.check(&check).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(secs(5), answered).await.unwrap();
}

/// Empties a replica, which does not ask its primary for the data again.
fn empty(replica: &RedisServer) {
    for command in ["CONFIG SET replica-read-only no", "FLUSHALL"] {
        assert!(replica.command(command).unwrap().starts_with("+OK"));
    }
}

/// Two requests run while an empty replica takes over, and one of them ends meanwhile.
async fn survives_failover(
    store: RedisStore,
    kill_primary: impl FnOnce(),
    promote_replica: impl FnOnce(),
) {
    // Units that nobody releases or renews would stay for longer than the test waits.
    let streams = STREAMS.ttl(secs(6));
    let layer = RateLimitLayer::new(store.clone(), policy_of(Limit::new("streams", streams)));
    let mut running = started(&layer, 2).await;
    kill_primary();
    end(running.split_off(1));
    promote_replica();
    until_answered(&store).await;
    until_free(&store, 1).await;
    end(running);
    until_free(&store, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_replica_counts_running_requests_again() {
    let servers = RefCell::new(RedisSentinel::start());
    let urls = servers.borrow().urls();
    let options = RedisStore::options().deadline(secs(1));
    let store = options.sentinel(urls, RedisSentinel::MASTER_NAME).await;
    let kill = || {
        empty(servers.borrow().server(1));
        servers.borrow_mut().kill(0);
    };
    let promote = || servers.borrow().wait_for_promotion(1);
    survives_failover(store.unwrap(), kill, promote).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_replica_of_cluster_counts_running_requests_again() {
    let servers = RefCell::new(RedisCluster::start());
    let urls = servers.borrow().urls();
    let options = RedisStore::options().deadline(secs(1));
    let store = options.cluster(urls).await.unwrap();
    let slot = servers.borrow().slot(&store.key_of(&Key::EVERYONE));
    let owner = servers.borrow().owner(slot).unwrap();
    let kill = || {
        empty(servers.borrow().node(owner + 3));
        servers.borrow_mut().kill(owner);
    };
    let promote = || {
        servers.borrow().wait_for_promotion(slot, owner);
        servers.borrow().wait_for_agreement(slot, owner);
    };
    survives_failover(store, kill, promote).await;
}
