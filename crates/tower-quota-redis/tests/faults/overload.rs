//! Tests more decisions than the server can make in time.
//!
//! The server is behind a link with a fixed number of bytes per second. The capacity is the rate of
//! decisions with a deadline that all answers meet. The load is then a multiple of the capacity,
//! whether or not answers come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tower_quota_core::{Charge, Clock, Key, MonotonicClock, Name, Quota, Store};
use tower_quota_dev::{Fault, FaultProxy, RedisServer};
use tower_quota_redis::{RedisStore, RedisStoreError};

use crate::rig::{TEST_TIMEOUT, options, pause, until_answered};

/// The bytes per second of the link, which any machine exceeds.
const SLOW: Fault = Fault::Slow(40_000);
/// The deadline, which is long compared with the delays of a loaded machine.
const DEADLINE: Duration = Duration::from_secs(1);
const STORES: usize = 2;
const TICK: Duration = Duration::from_millis(5);
const QUOTA: Quota = Quota::per_hour(1_000_000);
/// A long readable key, so that decisions take most bytes on the link, and headers of calls few.
const NAME: &str = "a-client-with-a-name-of-about-a-hundred-characters-which-is-sent-as-it-is-because-keys-are-readable";

/// The results of the decisions of a load.
#[derive(Debug, Default)]
struct Tally {
    asked: AtomicU64,
    in_time: AtomicU64,
    overloaded: AtomicU64,
    breaker_open: AtomicU64,
    /// The failed decisions that may have been charged.
    late: AtomicU64,
}

impl Tally {
    fn count(&self, outcome: &Result<tower_quota_core::Decision, RedisStoreError>) {
        let counter = match outcome {
            Ok(_) => &self.in_time,
            Err(RedisStoreError::Overloaded { .. }) => &self.overloaded,
            Err(RedisStoreError::BreakerOpen { .. }) => &self.breaker_open,
            Err(_) => &self.late,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap()
}

async fn stores(link: &FaultProxy, deadline: Duration) -> Vec<RedisStore> {
    let mut stores = Vec::new();
    for _ in 0..STORES {
        let store = options(deadline)
            .readable_keys(true)
            .connect(&link.url())
            .await
            .unwrap();
        until_answered(&store).await;
        stores.push(store);
    }
    stores
}

/// Makes a decision, and counts the result.
async fn ask(store: RedisStore, number: u64, tally: Arc<Tally>) {
    let key = Key::owned(Name::new("user"), format!("{NAME}{}", number % 1_000));
    let outcome = store.check(&[Charge::new("hour", &QUOTA, &key)]).await;
    tally.count(&outcome);
}

/// Measures the decisions per second of tasks that each wait for their answers.
async fn capacity(link: &FaultProxy) -> u64 {
    let (stores, tally) = (stores(link, TEST_TIMEOUT).await, Arc::new(Tally::default()));
    let mut tasks = JoinSet::new();
    for number in 0..64 {
        let (store, tally) = (stores[number % STORES].clone(), Arc::clone(&tally));
        tasks.spawn(async move {
            loop {
                ask(store.clone(), number as u64, Arc::clone(&tally)).await;
            }
        });
    }
    pause(DEADLINE).await;
    let (clock, before) = (MonotonicClock::new(), read(&tally.in_time));
    let began = clock.now();
    pause(4 * DEADLINE).await;
    let answered = read(&tally.in_time) - before;
    let micros = micros(clock.now().since(began));
    tasks.shutdown().await;
    answered * 1_000_000 / micros
}

/// Sends decisions at a rate for more than a deadline. Returns the timely answers per second.
async fn offer(
    stores: &[RedisStore],
    per_second: u64,
    lasting: Duration,
    tally: &Arc<Tally>,
) -> u64 {
    let clock = MonotonicClock::new();
    let (began, mut asked, mut tasks, mut next_store) =
        (clock.now(), 0, JoinSet::new(), stores.iter().cycle());
    // Count from a deadline on, because the first answers come up to a deadline later.
    let mut counted_from = None;
    loop {
        let elapsed = clock.now().since(began);
        if elapsed >= DEADLINE && counted_from.is_none() {
            counted_from = Some((clock.now(), read(&tally.in_time)));
        }
        if elapsed >= lasting {
            break;
        }
        while asked < per_second * micros(elapsed) / 1_000_000 {
            asked += 1;
            tally.asked.fetch_add(1, Ordering::Relaxed);
            let store = next_store.next().unwrap().clone();
            tasks.spawn(ask(store, asked, Arc::clone(tally)));
        }
        while tasks.try_join_next().is_some() {}
        pause(TICK).await;
    }
    let (from, before) = counted_from.unwrap();
    let answered = read(&tally.in_time) - before;
    let micros = micros(clock.now().since(from));
    while tasks.join_next().await.is_some() {}
    answered * 1_000_000 / micros
}

/// Starts a server behind a link, measures its capacity, and connects stores to it.
async fn rig() -> (RedisServer, FaultProxy, u64, Vec<RedisStore>) {
    let server = RedisServer::start();
    let link = FaultProxy::to(server.port());
    link.inflict(SLOW);
    let capacity = capacity(&link).await;
    let stores = stores(&link, DEADLINE).await;
    println!("capacity: {capacity} decisions a second");
    (server, link, capacity, stores)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overload_keeps_goodput_near_capacity() {
    let (_server, _link, capacity, stores) = rig().await;
    let mut shares = Vec::new();
    for (times, seconds) in [(1, 10), (2, 10), (4, 10), (8, 10)] {
        let tally = Arc::new(Tally::default());
        let goodput = offer(
            &stores,
            times * capacity,
            Duration::from_secs(seconds),
            &tally,
        )
        .await;
        shares.push(goodput * 100 / capacity);
        println!(
            "| {times} x | {goodput}/s | {} % | {tally:?} |",
            shares[shares.len() - 1]
        );
    }
    assert!(shares.iter().all(|&share| share >= 80), "{shares:?}");
    // After the overload, decisions are answered within a deadline.
    let after = Arc::new(Tally::default());
    let goodput = offer(&stores, capacity / 2, 4 * DEADLINE, &after).await;
    assert!(goodput * 100 >= capacity / 2 * 90, "{goodput} {after:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_returns_after_a_stall() {
    let (_server, link, capacity, stores) = rig().await;
    let tally = Arc::new(Tally::default());
    // Make every call late until the breakers open, at four times the capacity.
    link.inflict(Fault::Stall);
    offer(&stores, 4 * capacity, 8 * DEADLINE, &tally).await;
    println!("stalled: {tally:?}");
    assert!(read(&tally.breaker_open) > 0, "{tally:?}");
    link.inflict(SLOW);
    // The server first does the work that clients have given up.
    offer(&stores, 4 * capacity, 2 * DEADLINE, &Arc::default()).await;
    let goodput = offer(&stores, 4 * capacity, 4 * DEADLINE, &Arc::default()).await;
    println!("then: {goodput}/s of {capacity}/s");
    assert!(goodput * 100 >= capacity * 80, "{goodput} of {capacity}");
}
