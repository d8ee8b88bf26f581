//! The breaker of one partition, and the task that probes its server while it is open.
//!
//! A prober runs only while its runtime does. One that is driven by `block_on` alone stands still in between, and longer
//! than that when each future is ready at once, as with an open breaker. So a prober that has not been heard of for a
//! while is relieved: the next call goes out in its place.
//!
//! A dead cluster has a prober for each of its partitions. They share the attempts to connect (`link/line.rs`), and pause
//! for spans of their own, so that their probes do not come all at once; nor do those of many instances.

use core::num::NonZeroU32;
use core::time::Duration;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::breaker::Breaker;
use crate::link::{Link, RENEWAL_PAUSE};

/// The shortest pause between two probes: so long that each may try to connect. The longest bounds how long a healthy
/// server goes unnoticed.
const LEAST_PAUSE: Duration = RENEWAL_PAUSE;
const MOST_PAUSE: Duration = Duration::from_millis(125);
/// How long a prober may be silent, beyond what a probe may take.
const MOST_SILENCE: Duration = Duration::from_secs(1);

/// Whether a partition's server is worth asking, and who finds out when it is again.
pub(crate) struct Health {
    breaker: Breaker,
    /// Who probes. Held whenever the breaker opens, or ceases to be open.
    watch: Mutex<Watch>,
    links: Vec<Link>,
    /// A key of the partition, for links that lead to several servers.
    key: String,
    /// How long a probe may take.
    patience: Duration,
}

/// The prober in charge.
struct Watch {
    /// Each has another number. One that has been relieved is no longer in charge, and ends.
    number: u64,
    heard_of: Instant,
}

impl Watch {
    fn relieve(&mut self) -> u64 {
        self.number += 1;
        self.heard_of = now();
        self.number
    }
}

impl Health {
    pub(crate) fn new(failures: NonZeroU32, links: Vec<Link>, key: String, patience: Duration) -> Arc<Self> {
        let watch = Mutex::new(Watch { number: 0, heard_of: now() });
        Arc::new(Self { breaker: Breaker::new(failures), watch, links, key, patience })
    }

    /// Whether no call may go out. False also for one that is to find out because nobody else does.
    pub(crate) fn is_open(&self) -> bool {
        if !self.breaker.is_open() {
            return false;
        }
        let mut watch = self.watch();
        let is_silent = now().duration_since(watch.heard_of) >= MOST_SILENCE.saturating_add(self.patience);
        if is_silent && self.breaker.is_open() {
            watch.relieve();
            self.breaker.leave_to_the_next();
        }
        self.breaker.is_open()
    }

    /// A call was answered, be it by an error.
    pub(crate) fn answered(&self) {
        self.breaker.succeeded();
    }

    /// A call was not answered.
    pub(crate) fn failed(self: &Arc<Self>) {
        let number = {
            let mut watch = self.watch();
            if !self.breaker.failed() {
                return;
            }
            watch.relieve()
        };
        let prober = Prober { health: Arc::downgrade(self), number };
        // Without a runtime the prober ends here, and so leaves it to the next call.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(prober.probe());
        }
    }

    async fn probe(&self) -> bool {
        let Some(link) = self.links.first() else { return true };
        let alive = tokio::time::timeout(self.patience, link.is_alive(&self.key)).await;
        alive.unwrap_or(false)
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        // Nothing in a watch can be half done.
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that probes. It ends with the store, with its runtime, with the first good probe, or when it is relieved.
struct Prober {
    health: Weak<Health>,
    number: u64,
}

impl Prober {
    #[expect(clippy::disallowed_methods, reason = "a pause between two probes of a server that was silent")]
    async fn probe(self) {
        loop {
            {
                let Some(health) = self.in_charge() else { return };
                // The connections may lead nowhere, or to where the server used to be.
                health.links.iter().for_each(Link::renew);
            }
            tokio::time::sleep(some_pause()).await;
            let Some(health) = self.in_charge() else { return };
            if health.probe().await {
                self.found_well(&health);
                return;
            }
        }
    }

    /// Closes the breaker, unless somebody else has taken over.
    fn found_well(&self, health: &Health) {
        let watch = health.watch();
        if watch.number == self.number {
            health.breaker.close();
        }
    }

    /// What to probe, unless the store is gone or somebody else has taken over. Counts as a sign of life.
    fn in_charge(&self) -> Option<Arc<Health>> {
        let health = self.health.upgrade()?;
        {
            let mut watch = health.watch();
            if watch.number != self.number {
                return None;
            }
            watch.heard_of = now();
        }
        Some(health)
    }
}

/// One that has ended as it should finds the breaker closed; opened again meanwhile, it has another prober.
impl Drop for Prober {
    fn drop(&mut self) {
        let Some(health) = self.health.upgrade() else { return };
        let watch = health.watch();
        if watch.number == self.number && health.breaker.is_open() {
            health.breaker.leave_to_the_next();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a prober is silent is a matter of this machine's time")]
fn now() -> Instant {
    Instant::now()
}

/// Another each time, evenly spread.
fn some_pause() -> Duration {
    let spread = u64::try_from((MOST_PAUSE - LEAST_PAUSE).as_micros()).unwrap_or(0);
    // Each of the hasher's states differs from the last, and from those of other processes.
    LEAST_PAUSE + Duration::from_micros(RandomState::new().hash_one(()) % (spread + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opened by its first failure. Its prober is spawned and does not run, since nothing here awaits.
    fn opened() -> Arc<Health> {
        let health = Health::new(NonZeroU32::MIN, Vec::new(), "key".to_owned(), Duration::from_millis(50));
        health.failed();
        assert!(health.is_open());
        health
    }

    /// The prober in charge, as it is when its probe has come back.
    fn in_charge(health: &Arc<Health>) -> Prober {
        Prober { health: Arc::downgrade(health), number: health.watch().number }
    }

    #[tokio::test]
    async fn a_failure_before_a_prober_has_quite_ended_opens_the_breaker_for_good() {
        let health = opened();
        let ending = in_charge(&health);
        ending.found_well(&health);
        assert!(!health.is_open());
        health.failed();
        drop(ending);
        assert!(health.is_open(), "the end of the first prober has stopped the second");
    }

    #[tokio::test]
    async fn a_prober_that_was_relieved_changes_nothing() {
        let health = opened();
        let relieved = in_charge(&health);
        health.watch().relieve();
        relieved.found_well(&health);
        assert!(health.is_open() && relieved.in_charge().is_none());
        drop(relieved);
        assert!(health.is_open());
    }

    #[tokio::test]
    async fn a_prober_that_is_stopped_leaves_it_to_the_next_call() {
        let health = opened();
        drop(in_charge(&health));
        assert!(!health.is_open());
        health.failed();
        assert!(health.is_open(), "one failure is enough");
    }

    #[test]
    fn where_nothing_runs_nobody_is_expected_to_probe() {
        let health = Health::new(NonZeroU32::MIN, Vec::new(), "key".to_owned(), Duration::from_millis(50));
        health.failed();
        assert!(!health.is_open());
    }

    #[test]
    fn pauses_differ_within_their_bounds() {
        let pauses: Vec<Duration> = (0..1_000).map(|_| some_pause()).collect();
        assert!(pauses.iter().all(|pause| (LEAST_PAUSE..=MOST_PAUSE).contains(pause)));
        let early = pauses.iter().filter(|&&pause| pause < Duration::from_millis(100)).count();
        assert!((300..700).contains(&early), "{early} of 1000 in the earlier half");
    }
}
