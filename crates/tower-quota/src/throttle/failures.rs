use core::error::Error;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;
use tower_quota_core::{HoldEvents, Name};

use super::pushbacks::now;
use crate::settle::{DroppedRelease, LostHold};

const WARNING_INTERVAL: Duration = Duration::from_secs(60);

type Listener = dyn Fn(&(dyn Error + 'static)) + Send + Sync;

/// The instant of the last warning of a kind.
type LastWarning = Arc<Mutex<Option<Instant>>>;

/// Logs failures of the store, and reports failures to your closure.
#[derive(Clone, Default)]
pub(super) struct Failures {
    pub(super) listener: Option<Arc<Listener>>,
    of_requests: LastWarning,
    of_releases: LastWarning,
    of_losses: LastWarning,
}

impl Failures {
    pub(super) fn report(&self, error: &(dyn Error + 'static)) {
        if is_due(&self.of_requests) {
            tracing::warn!(
                target: "tower_quota",
                "the store of a throttle fails, and requests do what `on_store_failure` says: {error}"
            );
        }
        self.call_listener(error);
    }

    fn call_listener(&self, error: &(dyn Error + 'static)) {
        if let Some(listener) = &self.listener {
            listener(error);
        }
    }
}

/// Returns whether the last warning is a minute old, and remembers the new one.
fn is_due(last: &LastWarning) -> bool {
    let now = now();
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let is_due = last.is_none_or(|last| now - last >= WARNING_INTERVAL);
    if is_due {
        *last = Some(now);
    }
    is_due
}

impl HoldEvents for Failures {
    fn failed(&self, error: &(dyn Error + 'static)) {
        if is_due(&self.of_releases) {
            tracing::warn!(
                target: "tower_quota",
                "the store of a throttle fails to renew or release units, and the throttle repeats the calls: {error}"
            );
        }
        self.call_listener(error);
    }

    fn lost(&self, limit: Name) -> bool {
        let error = LostHold(limit);
        if is_due(&self.of_losses) {
            tracing::warn!(target: "tower_quota", "{error}");
        }
        self.call_listener(&error);
        true
    }

    fn dropped(&self) {
        self.failed(&DroppedRelease);
    }
}
