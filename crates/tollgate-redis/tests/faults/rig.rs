//! A load on a store while something fails, and the account of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinHandle;
use tollgate_core::{Charge, Clock, Key, MonotonicClock, Name, Quota, Store, Timestamp};
use tollgate_redis::{RedisStore, RedisStoreError};

/// The deadline of the stores under load.
pub(crate) const DEADLINE: Duration = Duration::from_millis(200);
/// What a loaded machine may add to a deadline before a test fails. The rows show what it really was.
const MARGIN: Duration = Duration::from_secs(2);
/// The same for the second within which a store finds a healthy server again.
const RECOVERY: Duration = Duration::from_secs(3);
/// How long a fault lasts when nothing else ends it.
pub(crate) const A_WHILE: Duration = Duration::from_secs(1);

/// What may pass: few enough to be used up, so that too many would show.
pub(crate) const CAP: u64 = 300;
const CAPPED: Quota = Quota::per_hour(CAP).fixed_window();
/// So many that each request is counted, so that one counted twice would show.
const COUNTED: Quota = Quota::per_hour(10_000_000).fixed_window();
const WORKERS: usize = 8;

/// Faults are tried one at a time: the figures of each should be its own.
static ALONE: Mutex<()> = Mutex::const_new(());

pub(crate) async fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().await
}

/// A store under load.
pub(crate) struct Trial {
    store: RedisStore,
    deadline: Duration,
    account: Arc<Account>,
    workers: Vec<JoinHandle<()>>,
    clock: Arc<MonotonicClock>,
}

#[derive(Default)]
struct Account {
    is_over: AtomicBool,
    longest: AtomicU64,
    capped: AtomicU64,
    refused: AtomicU64,
    counted: AtomicU64,
    /// Requests that failed and may have been counted.
    unsure: AtomicU64,
    failed: AtomicU64,
}

/// What a trial came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) longest: Duration,
    /// How many passed the limit of `CAP`.
    pub(crate) capped: u64,
    /// How many passed the other limit, how many failed, and of those how many may have been counted.
    pub(crate) counted: u64,
    pub(crate) failed: u64,
    pub(crate) unsure: u64,
}

impl Trial {
    /// Puts a store under load, and waits until it works.
    pub(crate) async fn start(store: RedisStore, deadline: Duration) -> Self {
        let clock = Arc::new(MonotonicClock::new());
        let account = Arc::new(Account::default());
        let workers = (0..WORKERS)
            .map(|i| tokio::spawn(work(store.clone(), i % 2 == 0, Arc::clone(&account), Arc::clone(&clock))))
            .collect();
        let trial = Self { store, deadline, account, workers, clock };
        while trial.account.capped.load(Ordering::Relaxed) < CAP / 3 {
            pause(Duration::from_millis(1)).await;
        }
        trial
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How long it took, from an instant on, until requests were answered again.
    pub(crate) async fn recovery(&self, since: Timestamp) -> Duration {
        self.recovery_for(&key("other"), since).await
    }

    async fn recovery_for(&self, whom: &Key<'_>, since: Timestamp) -> Duration {
        loop {
            let (asked, answer) = (self.now(), self.store.check(&[Charge::new("all", &COUNTED, whom)]).await);
            let taken = self.now().since(since);
            if answer.is_ok() && asked >= since {
                assert!(taken < RECOVERY, "recovery took {taken:?}");
                return taken;
            }
            assert!(taken < 10 * RECOVERY, "no recovery: {answer:?}");
            pause(Duration::from_millis(1)).await;
        }
    }

    /// The same for subjects in every part of a cluster.
    pub(crate) async fn recovery_of_all(&self, since: Timestamp) -> Duration {
        let mut longest = Duration::ZERO;
        for i in 0..256 {
            longest = longest.max(self.recovery_for(&key(&format!("other {i}")), since).await);
        }
        longest
    }

    /// Ends the load, asserts what holds in every fault, and prints the row.
    ///
    /// `allowed` is how many the limit may let pass, `lost` whether the server may have forgotten what it counted.
    pub(crate) async fn end(self, fault: &str, allowed: u64, lost: bool, recovery: Option<Duration>) -> Outcome {
        if recovery.is_some() {
            // So long that too many would have passed, if they could.
            self.account.refused.store(0, Ordering::Relaxed);
            while self.account.refused.load(Ordering::Relaxed) < 20 {
                pause(Duration::from_millis(1)).await;
            }
        }
        self.account.is_over.store(true, Ordering::Relaxed);
        for worker in self.workers {
            // Fails if it panicked.
            worker.await.unwrap();
        }
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let account = &self.account;
        let outcome = Outcome {
            longest: Duration::from_micros(read(&account.longest)),
            capped: read(&account.capped),
            counted: read(&account.counted),
            failed: read(&account.failed),
            unsure: read(&account.unsure),
        };
        let recovery = recovery.map_or_else(|| "-".to_owned(), |recovery| format!("{} ms", recovery.as_millis()));
        println!(
            "| {fault} | {} of {} ms | {} of {allowed} | {recovery} |",
            outcome.longest.as_millis(),
            self.deadline.as_millis(),
            outcome.capped,
        );
        assert!(outcome.longest < self.deadline + MARGIN, "{fault}: {outcome:?}");
        assert!(outcome.capped <= allowed, "{fault}: {outcome:?}");
        if let (false, Ok(peek)) =
            (lost, self.store.check(&[Charge::new("all", &COUNTED, &key("counted")).cost(0)]).await)
        {
            let taken = COUNTED.capacity() - peek.standings()[0].remaining;
            assert!(
                (outcome.counted..=outcome.counted + outcome.unsure).contains(&taken),
                "{fault}: {taken} were counted: {outcome:?}"
            );
        }
        outcome
    }
}

async fn work(store: RedisStore, is_capped: bool, account: Arc<Account>, clock: Arc<MonotonicClock>) {
    let (quota, key) = if is_capped { (CAPPED, key("capped")) } else { (COUNTED, key("counted")) };
    while !account.is_over.load(Ordering::Relaxed) {
        let asked = clock.now();
        let answer = store.check(&[Charge::new("all", &quota, &key)]).await;
        let waited = clock.now().since(asked);
        account.longest.fetch_max(u64::try_from(waited.as_micros()).unwrap(), Ordering::Relaxed);
        match answer {
            Ok(decision) => {
                let passed = if is_capped { &account.capped } else { &account.counted };
                passed.fetch_add(u64::from(decision.is_allowed()), Ordering::Relaxed);
                account.refused.fetch_add(u64::from(!decision.is_allowed()), Ordering::Relaxed);
            }
            Err(error) => {
                account.failed.fetch_add(1, Ordering::Relaxed);
                let may_be_counted = matches!(
                    error,
                    RedisStoreError::Deadline { .. } | RedisStoreError::Lost { .. } | RedisStoreError::Garbled { .. }
                );
                account.unsure.fetch_add(u64::from(may_be_counted && !is_capped), Ordering::Relaxed);
            }
        }
        // So that a breaker that answers at once is not asked a million times.
        pause(Duration::from_millis(1)).await;
    }
}

pub(crate) fn key(of: &str) -> Key<'static> {
    Key::owned(Name::new("fault"), of)
}

#[expect(clippy::disallowed_methods, reason = "a load on a real server, and a fault that lasts for a while")]
pub(crate) async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}

pub(crate) async fn store_at(url: &str, deadline: Duration) -> RedisStore {
    RedisStore::options().deadline(deadline).connect(url).await.unwrap()
}
