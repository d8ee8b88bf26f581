//! More decisions than the server can make in time.
//!
//! The server is behind a link that carries a known number of bytes a second. Its capacity is what comes through with a
//! deadline that all answers meet. Then decisions are asked for at multiples of that, whether answered or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tower_quota_core::{Charge, Clock, Key, MonotonicClock, Name, Quota, Store};
use tower_quota_redis::{RedisStore, RedisStoreError};
use tower_quota_testkit::{RedisServer, SlowLink};

use crate::rig::{PATIENT, alone, options, pause, until_answered};

const BYTES_PER_SECOND: u64 = 400_000;
/// Long beside what a loaded machine adds to each call.
const DEADLINE: Duration = Duration::from_millis(400);
const STORES: usize = 2;
const TICK: Duration = Duration::from_millis(5);
const QUOTA: Quota = Quota::per_hour(1_000_000);
/// Long names that are sent as they are, so that the link is filled by decisions and not by what a call adds.
const NAME: &str =
    "a-client-with-a-name-of-about-a-hundred-characters-which-is-sent-as-it-is-because-keys-are-readable";

/// What became of the decisions of a load.
#[derive(Debug, Default)]
struct Tally {
    asked: AtomicU64,
    in_time: AtomicU64,
    overloaded: AtomicU64,
    breaker_open: AtomicU64,
    /// Decisions that may have been charged in vain.
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

async fn stores(link: &SlowLink, deadline: Duration) -> Vec<RedisStore> {
    let mut stores = Vec::new();
    for _ in 0..STORES {
        let store = options(deadline).readable_keys(true).connect(&link.url()).await.unwrap();
        until_answered(&store).await;
        stores.push(store);
    }
    stores
}

/// Asks for one decision.
async fn ask(store: RedisStore, number: u64, tally: Arc<Tally>) {
    let key = Key::owned(Name::new("user"), format!("{NAME}{}", number % 1_000));
    let outcome = store.check(&[Charge::new("hour", &QUOTA, &key)]).await;
    tally.count(&outcome);
}

/// Measures how many decisions a second come through while each task asks again as soon as it is answered.
async fn capacity(link: &SlowLink) -> u64 {
    let (stores, tally) = (stores(link, PATIENT).await, Arc::new(Tally::default()));
    let mut tasks = JoinSet::new();
    for number in 0..64 {
        let (store, tally) = (stores[number % STORES].clone(), Arc::clone(&tally));
        tasks.spawn(async move {
            loop {
                ask(store.clone(), number as u64, Arc::clone(&tally)).await;
            }
        });
    }
    pause(Duration::from_secs(1)).await;
    let (clock, before) = (MonotonicClock::new(), read(&tally.in_time));
    let began = clock.now();
    pause(Duration::from_secs(3)).await;
    let answered = read(&tally.in_time) - before;
    let micros = micros(clock.now().since(began));
    tasks.shutdown().await;
    answered * 1_000_000 / micros
}

/// Asks at a rate for a while, and returns how many a second were answered in time.
async fn offer(stores: &[RedisStore], per_second: u64, lasting: Duration, tally: &Arc<Tally>) -> u64 {
    let clock = MonotonicClock::new();
    let (began, mut asked, mut tasks, mut next_store) = (clock.now(), 0, JoinSet::new(), stores.iter().cycle());
    let before = read(&tally.in_time);
    loop {
        let elapsed = clock.now().since(began);
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
    let answered = read(&tally.in_time) - before;
    let micros = micros(clock.now().since(began));
    while tasks.join_next().await.is_some() {}
    answered * 1_000_000 / micros
}

/// Starts a server behind a link, measures its capacity, and connects stores to it.
async fn rig() -> (RedisServer, SlowLink, u64, Vec<RedisStore>) {
    let server = RedisServer::start();
    let link = SlowLink::to(server.port(), BYTES_PER_SECOND);
    let capacity = capacity(&link).await;
    let stores = stores(&link, DEADLINE).await;
    println!("capacity: {capacity} decisions a second");
    (server, link, capacity, stores)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overload_keeps_goodput_near_capacity() {
    let _alone = alone().await;
    let (_server, _link, capacity, stores) = rig().await;
    let mut shares = Vec::new();
    for (times, seconds) in [(1, 3), (2, 3), (4, 3), (8, 10)] {
        let tally = Arc::new(Tally::default());
        let goodput = offer(&stores, times * capacity, Duration::from_secs(seconds), &tally).await;
        shares.push(goodput * 100 / capacity);
        println!("| {times} x | {goodput}/s | {} % | {tally:?} |", shares[shares.len() - 1]);
    }
    assert!(shares.iter().all(|&share| share >= 80), "{shares:?}");
    // The overload ends: within a second all that is asked is answered again.
    offer(&stores, capacity / 2, Duration::from_secs(1), &Arc::default()).await;
    let after = Arc::new(Tally::default());
    offer(&stores, capacity / 2, Duration::from_secs(1), &after).await;
    let (asked, in_time) = (read(&after.asked), read(&after.in_time));
    assert!(in_time * 100 >= asked * 95, "{after:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_returns_within_a_second_of_a_stall() {
    let _alone = alone().await;
    let (_server, link, capacity, stores) = rig().await;
    let tally = Arc::new(Tally::default());
    // So slow that calls are late and the breakers open, while four times the capacity is asked for.
    link.set_rate(BYTES_PER_SECOND / 100);
    let goodput = offer(&stores, 4 * capacity, Duration::from_secs(5), &tally).await;
    println!("stalled: {goodput}/s {tally:?}");
    assert!(read(&tally.breaker_open) > 0, "{tally:?}");
    link.set_rate(BYTES_PER_SECOND);
    let first = offer(&stores, 4 * capacity, Duration::from_secs(1), &Arc::default()).await;
    let then = offer(&stores, 4 * capacity, Duration::from_secs(2), &Arc::default()).await;
    println!("the first second after it: {first}/s; then: {then}/s");
    assert!(then * 100 >= capacity * 80, "{then} of {capacity}");
}
