//! Tasks that ask a store without pause, and count the outcomes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tower_quota_core::{Charge, Clock, Key, MonotonicClock, Name, Quota, Store};
use tower_quota_redis::{RedisStore, RedisStoreError};

use crate::rig::pause;

/// Requests that may be admitted: few enough to be used up, so that too many would show.
pub(crate) const CAP: u64 = 300;
/// So long a window that none ends during a test.
const YEAR: Duration = Duration::from_secs(366 * 86_400);
const CAPPED: Quota = Quota::new(CAP, YEAR).fixed_window();
/// So many that each request is counted, so that one counted twice would show.
pub(crate) const COUNTED: Quota = Quota::new(10_000_000, YEAR).fixed_window();

#[derive(Default)]
pub(crate) struct LoadCounters {
    pub(crate) is_over: AtomicBool,
    /// In microseconds.
    pub(crate) longest: AtomicU64,
    /// Requests that the limit of `CAP` admitted, and refused.
    pub(crate) capped: AtomicU64,
    pub(crate) refused: AtomicU64,
    /// Requests that the other limit admitted.
    pub(crate) counted: AtomicU64,
    /// Requests to the other limit that ended in an error and may have been counted.
    pub(crate) unsure: AtomicU64,
    /// Requests of either kind that ended in an error.
    pub(crate) failed: AtomicU64,
}

/// Asks until the trial is over.
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
        // An open breaker answers at once.
        pause(Duration::from_millis(1)).await;
    }
}

pub(crate) fn key(of: &str) -> Key<'static> {
    Key::owned(Name::new("fault"), of)
}
