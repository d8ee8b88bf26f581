//! The layer under test: three requests, on a stopped clock.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tower_quota::{
    Decision, Limit, MemoryStore, Policy, Quota, RateLimitLayer, RefusalCache, Store,
    store::{Charge, Operation},
};
use tower_quota_testkit::ManualClock;

/// The layer under test.
pub(crate) type Limited = RateLimitLayer<SlowOrQuick>;

/// A memory store that decides at once, or after yielding to other tasks.
pub(crate) struct SlowOrQuick {
    memory: MemoryStore,
    is_slow: bool,
}

impl Store for SlowOrQuick {
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Decision, Infallible>> + Send>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let Ok(decision) = self.memory.apply(operation, charges).into_inner();
        Box::pin(async move {
            tokio::task::yield_now().await;
            Ok(decision)
        })
    }

    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        !self.is_slow && self.memory.check_at_once(charges, decision)
    }
}

/// Returns a limit of three requests a minute.
pub(crate) fn three_per_minute() -> Limit {
    Limit::new("three_per_minute", Quota::per_minute(3))
}

/// Limits requests by this limit, with a store that decides at once or yields first.
///
/// The store decides each request, as a refusal cache would tell waits by the machine's clock.
pub(crate) fn limited_by(limit: Limit, is_slow: bool) -> Limited {
    let memory = MemoryStore::with_clock(100, ManualClock::default());
    let store = RefusalCache::new(SlowOrQuick { memory, is_slow }).max_age(Duration::ZERO);
    RateLimitLayer::with_refusal_cache(store, Policy::new().limit(limit))
}

/// Limits requests to three a minute, decided at once.
pub(crate) fn limited() -> Limited {
    limited_by(three_per_minute(), false)
}
