//! The breaker of one partition, and the task that probes its server while it is open.
//!
//! A prober runs only while its runtime does. One that is driven by `block_on` alone stands still in between, and longer
//! than that when each future is ready at once, as with an open breaker. So a prober that has not been heard of for a
//! while is relieved: the next call goes out in its place.

use core::num::NonZeroU32;
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::breaker::{Breaker, PROBE_PAUSE};
use crate::link::Link;

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
            tokio::time::sleep(PROBE_PAUSE).await;
            let Some(health) = self.in_charge() else { return };
            if health.probe().await {
                let watch = health.watch();
                if watch.number == self.number {
                    health.breaker.close();
                }
                return;
            }
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
