//! The breaker of one partition, and the task that probes its server while it is open.

use core::num::NonZeroU32;
use core::time::Duration;
use std::sync::{Arc, Weak};

use tokio::runtime::Handle;

use crate::breaker::{Breaker, PROBE_PAUSE};
use crate::link::Link;

/// Whether a partition's server is worth asking, and who finds out when it is again.
pub(crate) struct Health {
    breaker: Breaker,
    links: Vec<Link>,
    /// A key of the partition, for links that lead to several servers.
    key: String,
    /// How long a probe may take.
    patience: Duration,
}

impl Health {
    pub(crate) fn new(failures: NonZeroU32, links: Vec<Link>, key: String, patience: Duration) -> Arc<Self> {
        Arc::new(Self { breaker: Breaker::new(failures), links, key, patience })
    }

    pub(crate) fn is_open(&self) -> bool {
        self.breaker.is_open()
    }

    /// A call was answered, be it by an error.
    pub(crate) fn answered(&self) {
        self.breaker.succeeded();
    }

    /// A call was not answered.
    pub(crate) fn failed(self: &Arc<Self>) {
        if !self.breaker.failed() {
            return;
        }
        let prober = Prober(Arc::downgrade(self));
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
}

/// The task that probes. It ends with the store, with its runtime, or with the first good probe.
struct Prober(Weak<Health>);

impl Prober {
    #[expect(clippy::disallowed_methods, reason = "a pause between two probes of a server that was silent")]
    async fn probe(self) {
        loop {
            {
                let Some(health) = self.0.upgrade() else { return };
                // The connections may lead nowhere, or to where the server used to be.
                health.links.iter().for_each(Link::renew);
            }
            tokio::time::sleep(PROBE_PAUSE).await;
            let Some(health) = self.0.upgrade() else { return };
            if health.probe().await {
                health.breaker.close();
                return;
            }
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        if let Some(health) = self.0.upgrade()
            && health.breaker.is_open()
        {
            health.breaker.leave_to_the_next();
        }
    }
}
