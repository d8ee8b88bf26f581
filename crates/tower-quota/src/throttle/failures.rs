use core::error::Error;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;
use tower_quota_core::{HoldEvents, Name};

use super::pushbacks::now;
use crate::settle::{DroppedRelease, LostHold};

const WARNING_INTERVAL: Duration = Duration::from_secs(60);

type Listener = dyn Fn(&(dyn Error + 'static)) + Send + Sync;

/// Logs failures of the store, and tells your closure.
#[derive(Clone, Default)]
pub(super) struct Failures {
    pub(super) listener: Option<Arc<Listener>>,
    last_warning: Arc<Mutex<Option<Instant>>>,
}

impl Failures {
    pub(super) fn tell(&self, error: &(dyn Error + 'static)) {
        self.warn(error);
        if let Some(listener) = &self.listener {
            listener(error);
        }
    }

    fn warn(&self, error: &(dyn Error + 'static)) {
        let now = now();
        let last = self.last_warning.lock();
        let mut last = last.unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| now - last >= WARNING_INTERVAL) {
            *last = Some(now);
            // A subscriber may be slow, so release the lock first.
            drop(last);
            tracing::warn!(
                target: "tower_quota",
                "the store of a throttle fails, and requests do what `on_store_failure` says: {error}"
            );
        }
    }
}

impl HoldEvents for Failures {
    fn failed(&self, error: &(dyn Error + 'static)) {
        self.tell(error);
    }

    fn lost(&self, limit: Name) -> bool {
        self.tell(&LostHold(limit));
        true
    }

    fn dropped(&self) {
        self.tell(&DroppedRelease);
    }
}
