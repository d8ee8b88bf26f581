//! Puts a store under load during a fault, and checks the outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};
use tower_quota_core::{Charge, Clock, Key, MonotonicClock, Quota, Store, Timestamp};
use tower_quota_redis::{RedisOptions, RedisStore, RedisStoreError};

use crate::lag::Watchdog;
use crate::load::{CAP, COUNTED, LoadCounters, key, work};
use crate::server_count::{CountCheck, Outcome};

/// The deadline of most stores under load.
pub(crate) const DEADLINE: Duration = Duration::from_millis(100);
/// A deadline that only a broken test reaches, for tests in which a late answer would hide the fault.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);
/// The default duration of a fault.
pub(crate) const FAULT_TIME: Duration = Duration::from_secs(1);
/// The time that a request may wait beyond its deadline and the lag of this machine.
const MARGIN: Duration = Duration::from_millis(50);
/// The longest recovery once the server is healthy, without the lag of this machine.
///
/// Each step may add the lag. The steps are a pause, a connection to each node, the slots' owners,
/// a trial and a call.
const RECOVERY: Duration = Duration::from_secs(1);
const STEPS: u32 = 10;
const WORKERS: usize = 8;
/// The number of keys for recoveries, enough for all partitions.
const OTHERS: u32 = 256;
/// The tasks that send requests for these keys. One task would add the time of 256 answers to the recovery of the last key.
const ASKERS: u32 = 32;

fn other(number: u32) -> Key<'static> {
    key(&format!("other {number}"))
}

/// A store under load.
pub(crate) struct Trial {
    store: RedisStore,
    deadline: Duration,
    counters: Arc<LoadCounters>,
    workers: Vec<JoinHandle<()>>,
    clock: Arc<MonotonicClock>,
    watchdog: Arc<Watchdog>,
}

impl Trial {
    /// Puts a working store under load, and waits until the limit has admitted some requests.
    pub(crate) async fn start(store: RedisStore, deadline: Duration) -> Self {
        until_answered(&store).await;
        let clock = Arc::new(MonotonicClock::new());
        let counters = Arc::new(LoadCounters::default());
        let watchdog = Arc::new(Watchdog::start());
        let workers = (0..WORKERS)
            .map(|i| {
                tokio::spawn(work(
                    store.clone(),
                    i % 2 == 0,
                    Arc::clone(&counters),
                    Arc::clone(&clock),
                ))
            })
            .collect();
        let trial = Self {
            store,
            deadline,
            counters,
            workers,
            clock,
            watchdog,
        };
        until("the load is under way", || {
            trial.counters.capped.load(Ordering::Relaxed) >= CAP / 3
        })
        .await;
        trial
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Waits until the fault makes a request fail.
    pub(crate) async fn until_some_fail(&self) {
        let before = self.counters.failed.load(Ordering::Relaxed);
        until("a request fails", || {
            self.counters.failed.load(Ordering::Relaxed) > before
        })
        .await;
    }

    /// Returns the time from an instant until requests are answered again.
    pub(crate) async fn recovery(&self, since: Timestamp) -> Duration {
        self.recovery_of(vec![key("other")], since).await
    }

    /// Returns the longest recovery of keys in all partitions of a cluster.
    pub(crate) async fn recovery_of_all(&self, since: Timestamp) -> Duration {
        let mut askers = JoinSet::new();
        for first in 0..ASKERS {
            let keys = (first..OTHERS).step_by(ASKERS as usize).map(other);
            askers.spawn(self.recovery_of(keys.collect(), since));
        }
        // Fails if one of them has.
        let recoveries = askers.join_all().await;
        recoveries.into_iter().max().unwrap()
    }

    /// Returns the names of the keys under load, and of the keys for recoveries.
    pub(crate) fn names(&self) -> Vec<String> {
        let keys = [key("capped"), key("counted")]
            .into_iter()
            .chain((0..OTHERS).map(other));
        keys.map(|key| self.store.key_of(&key)).collect()
    }

    /// Asks for each key until there is an answer, and returns the time of the longest recovery.
    fn recovery_of(
        &self,
        keys: Vec<Key<'static>>,
        since: Timestamp,
    ) -> impl Future<Output = Duration> + use<> {
        let store = self.store.clone();
        let clock = Arc::clone(&self.clock);
        let watchdog = Arc::clone(&self.watchdog);
        async move {
            let mut taken = Duration::ZERO;
            for key in &keys {
                loop {
                    let answer = store.check(&[Charge::new("all", &COUNTED, key)]).await;
                    taken = clock.now().since(since);
                    let lag = watchdog.worst();
                    assert!(
                        taken < RECOVERY + STEPS * lag,
                        "no recovery within {taken:?}, with a lag of {lag:?}: {answer:?}"
                    );
                    if answer.is_ok() {
                        break;
                    }
                    pause(Duration::from_millis(1)).await;
                }
            }
            taken
        }
    }

    /// Ends the load, checks the invariants of every fault, and prints the row. `allowed` is the
    /// number of requests that the limit may admit.
    pub(crate) async fn end(
        self,
        fault: &str,
        allowed: u64,
        count_check: CountCheck,
        recovery: Option<Duration>,
    ) -> Outcome {
        if recovery.is_some() {
            // Wait long enough that excess admissions would show.
            self.counters.refused.store(0, Ordering::Relaxed);
            until("the limit refuses", || {
                self.counters.refused.load(Ordering::Relaxed) >= 20
            })
            .await;
        }
        self.counters.is_over.store(true, Ordering::Relaxed);
        for worker in self.workers {
            // This fails if a task has panicked.
            worker.await.unwrap();
        }
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let counters = &self.counters;
        let outcome = Outcome {
            longest: Duration::from_micros(read(&counters.longest)),
            lag: self.watchdog.worst(),
            capped: read(&counters.capped),
            counted: read(&counters.counted),
            failed: read(&counters.failed),
            unsure: read(&counters.unsure),
        };
        let recovery = recovery.map_or_else(
            || "-".to_owned(),
            |recovery| format!("{} ms", recovery.as_millis()),
        );
        println!(
            "| {fault} | {} of {} ms | {} of {allowed} | {recovery} |",
            outcome.longest.as_millis(),
            self.deadline.as_millis(),
            outcome.capped,
        );
        println!("{outcome:?}");
        assert!(
            outcome.longest <= self.deadline + outcome.lag + MARGIN,
            "{fault}: {outcome:?}"
        );
        assert!(outcome.capped <= allowed, "{fault}: {outcome:?}");
        outcome.assert_server_count(count_check, &self.store).await;
        outcome
    }
}

/// Returns options of a store that does not wait for its connection.
pub(crate) fn options(deadline: Duration) -> RedisOptions {
    RedisStore::options().deadline(deadline).connect_lazily()
}

pub(crate) async fn store_at(url: &str, deadline: Duration) -> RedisStore {
    let store = options(deadline).connect(url).await.unwrap();
    until_answered(&store).await;
    store
}

/// Sends free checks until an answer comes.
pub(crate) async fn until_answered(store: &RedisStore) {
    let (clock, probe) = (MonotonicClock::new(), key("probe"));
    let began = clock.now();
    while let Err(error) = store
        .check(&[Charge::new("all", &COUNTED, &probe).cost(0)])
        .await
    {
        assert!(clock.now().since(began) < TEST_TIMEOUT, "{error:?}");
        pause(Duration::from_millis(1)).await;
    }
}

/// Sends checks of a key until the breaker is open.
pub(crate) async fn until_open(store: &RedisStore, key: &Key<'_>) {
    let (clock, quota) = (MonotonicClock::new(), Quota::per_hour(1));
    let began = clock.now();
    loop {
        match store.check(&[Charge::new("all", &quota, key)]).await {
            Err(error @ RedisStoreError::BreakerOpen { .. }) => {
                assert!(error.is_transient());
                return;
            }
            answer => assert!(
                clock.now().since(began) < TEST_TIMEOUT,
                "the breaker does not open: {answer:?}"
            ),
        }
        pause(Duration::from_millis(1)).await;
    }
}

/// Waits until a condition holds, up to a timeout.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = MonotonicClock::new();
    let began = clock.now();
    while !is_so() {
        assert!(
            clock.now().since(began) < TEST_TIMEOUT,
            "timed out waiting until {what}"
        );
        pause(Duration::from_millis(1)).await;
    }
}

/// Returns the number after the start of a line in a server's `INFO`, or 0.
pub(crate) fn number_in(info: &str, start: &str) -> usize {
    let Some(rest) = info.lines().find_map(|line| line.strip_prefix(start)) else {
        return 0;
    };
    rest.split(',').next().unwrap().trim().parse().unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a load on a real server, and a fault that lasts for a while"
)]
pub(crate) async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}
