//! Sends requests without a pause, and counts the outcomes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tower_quota_core::{Charge, Clock, Key, MonotonicClock, Name, Quota, Store};
use tower_quota_redis::{RedisStore, RedisStoreError};

use crate::rig::pause;

/// The units of the small limit, few enough to be spent in a trial, so that excess would show.
pub(crate) const CAP: u64 = 300;
/// A window that never ends during a test.
const YEAR: Duration = Duration::from_secs(366 * 86_400);
const CAPPED: Quota = Quota::new(CAP, YEAR).fixed_window();
/// A quota large enough for every request, so that a request counted twice would show.
pub(crate) const COUNTED: Quota = Quota::new(10_000_000, YEAR).fixed_window();

#[derive(Default)]
pub(crate) struct LoadCounters {
    pub(crate) is_over: AtomicBool,
    /// The longest wait in microseconds.
    pub(crate) longest: AtomicU64,
    /// The requests that the limit of `CAP` admitted.
    pub(crate) capped: AtomicU64,
    pub(crate) refused: AtomicU64,
    /// The requests that the other limit admitted.
    pub(crate) counted: AtomicU64,
    /// The requests of the other limit with an error that may have been counted.
    pub(crate) unsure: AtomicU64,
    /// The requests of both limits with an error.
    pub(crate) failed: AtomicU64,
}

/// Sends requests until the trial is over.
pub(crate) async fn work(
    store: RedisStore,
    is_capped: bool,
    counters: Arc<LoadCounters>,
    clock: Arc<MonotonicClock>,
) {
    let (quota, key) = if is_capped {
        (CAPPED, key("capped"))
    } else {
        (COUNTED, key("counted"))
    };
    while !counters.is_over.load(Ordering::Relaxed) {
        let asked = clock.now();
        let answer = store.check(&[Charge::new("all", &quota, &key)]).await;
        let waited = clock.now().since(asked);
        counters.longest.fetch_max(
            u64::try_from(waited.as_micros()).unwrap(),
            Ordering::Relaxed,
        );
        match answer {
            Ok(decision) => {
                let passed = if is_capped {
                    &counters.capped
                } else {
                    &counters.counted
                };
                passed.fetch_add(u64::from(decision.is_allowed()), Ordering::Relaxed);
                counters
                    .refused
                    .fetch_add(u64::from(!decision.is_allowed()), Ordering::Relaxed);
            }
            Err(error) => {
                counters.failed.fetch_add(1, Ordering::Relaxed);
                let may_be_counted = matches!(
                    error,
                    RedisStoreError::Deadline { .. }
                        | RedisStoreError::Lost { .. }
                        | RedisStoreError::Garbled { .. }
                );
                counters
                    .unsure
                    .fetch_add(u64::from(may_be_counted && !is_capped), Ordering::Relaxed);
            }
        }
        // Pause, because an open breaker answers at once.
        pause(Duration::from_millis(1)).await;
    }
}

pub(crate) fn key(of: &str) -> Key<'static> {
    Key::owned(Name::new("fault"), of)
}
