//! The limit, its three places in a stack, and the page with the expected results.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, Response};
use tower_http::trace::OnResponse;
use tower_quota::settle::Settle;
use tower_quota::{
    Decision, Key, Limit, MemoryStore, Policy, Quota, RateLimitLayer, Store,
    store::{Charge, Operation},
};
use tower_quota_testkit::ManualClock;

/// Records the statuses of the responses that a `TraceLayer` sees.
#[derive(Clone, Default)]
pub(crate) struct Traced(pub(crate) Arc<Mutex<Vec<u16>>>);

impl<B> OnResponse<B> for Traced {
    fn on_response(self, response: &Response<B>, _: Duration, _: &tracing::Span) {
        self.0.lock().unwrap().push(response.status().as_u16());
    }
}

/// Where the limit is in a stack of outer and inner layers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    Outside,
    Between,
    Inside,
}

pub(crate) type Limited = RateLimitLayer<TestStore>;

/// A memory store that decides at once, or after yielding to other tasks.
pub(crate) struct TestStore {
    memory: MemoryStore,
    yields: bool,
}

impl Store for TestStore {
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Decision, Infallible>> + Send>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let decision = self.memory.apply(operation, charges);
        Box::pin(async move {
            tokio::task::yield_now().await;
            decision.into_inner()
        })
    }

    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        !self.yields && self.memory.check_at_once(charges, decision)
    }

    /// Returns `false`, because the refusal cache does not use the stopped clock.
    fn is_shared(&self) -> bool {
        false
    }
}

/// Returns a limit of three requests that refunds abandoned requests.
pub(crate) fn three() -> Limit {
    Limit::new("three", Quota::per_minute(3)).on_abandoned(Settle::Refund)
}

pub(crate) fn limited(policy: Policy, yields: bool) -> Limited {
    let memory = MemoryStore::with_clock(100, ManualClock::default());
    RateLimitLayer::new(TestStore { memory, yields }, policy)
}

/// Calls `observe` for each place, and returns the results of the places.
///
/// The results must not depend on the store.
pub(crate) async fn in_each_place<T: PartialEq + std::fmt::Debug>(
    limit: Limit,
    observe: impl AsyncFn(Place, Limited) -> T,
) -> [T; 3] {
    let [mut at_once, mut after_yield] = [vec![], vec![]];
    for place in [Place::Outside, Place::Between, Place::Inside] {
        for (yields, results) in [(false, &mut at_once), (true, &mut after_yield)] {
            let layer = limited(Policy::new().limit(limit.clone()), yields);
            results.push(observe(place, layer).await);
        }
    }
    assert_eq!(at_once, after_yield);
    at_once.try_into().unwrap()
}

/// Returns the units that all requests so far have used, after abandoned requests are refunded.
///
/// The clock of tokio must be paused.
pub(crate) async fn used(limit: &Limited) -> usize {
    until_idle(pending::<()>()).await;
    let status = limit.handle().peek("three", &Key::EVERYONE).await.unwrap();
    usize::try_from(3 - status.remaining()).unwrap()
}

/// Polls a future until all tasks wait, and asserts that the future waits too.
///
/// The clock of tokio must be paused.
pub(crate) async fn until_idle(future: impl Future) {
    let ended = tokio::time::timeout(Duration::from_millis(1), future).await;
    assert!(ended.is_err());
}

/// Waits up to a deadline.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    let deadline = Duration::from_secs(30);
    tokio::time::timeout(deadline, future).await.unwrap()
}

pub(crate) fn field<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    Some(headers.get(name)?.to_str().unwrap())
}

/// Returns the remaining units in the fields of a response. The fields must be complete.
#[track_caller]
pub(crate) fn remaining(headers: &HeaderMap) -> usize {
    let policy = field(headers, "ratelimit-policy").unwrap();
    assert_eq!(policy, r#""three";q=3;w=60"#);
    let remaining = field(headers, "x-ratelimit-remaining").unwrap();
    remaining.parse().unwrap()
}

/// Asserts that a table of the page has this row.
#[track_caller]
pub(crate) fn assert_documented<T: Display>(title: &str, [outside, between, inside]: [T; 3]) {
    let row = format!("| {title} | {outside} | {between} | {inside} |");
    let page = include_str!("../../docs/reference/stacks.md");
    assert!(
        page.lines().any(|line| line == row),
        "not on the page: {row}"
    );
}
