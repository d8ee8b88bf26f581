use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tower_quota::store::{Clock, Timestamp};

/// A clock that shows the time of the current line. Clones share the time.
#[derive(Clone, Debug, Default)]
pub(super) struct LogClock(Arc<AtomicU64>);

impl LogClock {
    pub(super) fn set(&self, micros: u64) {
        self.0.store(micros, Ordering::Relaxed);
    }

    pub(super) fn micros(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Clock for LogClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros())
    }
}
