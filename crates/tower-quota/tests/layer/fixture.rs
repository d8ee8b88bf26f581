//! An inner service that records its requests, and scripted stores.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tower::{Layer, Service, ServiceExt};
use tower_quota::{
    Charge, Decision, Degraded, HeaderStyle, Key, MemoryStore, Operation, Policy, Protocol, Quota, RateLimit,
    RateLimitLayer, Reset, ResponseBody, Store,
};
pub(crate) use tower_quota_testkit::ScriptedStore;
use tower_quota_testkit::{ManualClock, ScriptedAnswer};

/// Answers `inner` to everything and remembers what each request brought along.
#[derive(Clone, Default)]
pub(crate) struct Inner {
    seen: Arc<Mutex<Vec<Option<Decision>>>>,
    degraded: Arc<Mutex<Vec<bool>>>,
}

impl Inner {
    pub(crate) fn calls(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    pub(crate) fn last_seen(&self) -> Option<Decision> {
        self.seen.lock().unwrap().last().unwrap().clone()
    }

    /// Whether the last request was marked as decided without the store.
    pub(crate) fn last_degraded(&self) -> bool {
        *self.degraded.lock().unwrap().last().unwrap()
    }
}

impl Service<Request<()>> for Inner {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        self.seen.lock().unwrap().push(request.extensions().get().cloned());
        self.degraded.lock().unwrap().push(request.extensions().get::<Degraded>().is_some());
        ready(Ok(Response::new(Full::from("inner"))))
    }
}

/// The default style, and the `X-RateLimit` fields beside it.
pub(crate) const WITH_X: [HeaderStyle; 2] = [HeaderStyle::Draft11, HeaderStyle::XRateLimit(Reset::Delta)];

pub(crate) type Answer = Response<ResponseBody<Full<Bytes>>>;

/// A policy over `Inner`, counted in memory on a clock that stands still.
pub(crate) struct Limited {
    pub(crate) service: RateLimit<Inner, MemoryStore>,
    pub(crate) inner: Inner,
}

impl Limited {
    pub(crate) fn new(policy: Policy) -> Self {
        Self::with(policy, |layer| layer)
    }

    pub(crate) fn with(
        policy: Policy,
        change: impl FnOnce(RateLimitLayer<MemoryStore>) -> RateLimitLayer<MemoryStore>,
    ) -> Self {
        let (inner, clock) = (Inner::default(), ManualClock::default());
        let layer = RateLimitLayer::new(MemoryStore::with_clock(1_000, clock), policy).attach_decision();
        let layer = change(layer.headers(WITH_X).protocol(Protocol::Both));
        Self { service: layer.layer(inner.clone()), inner }
    }

    pub(crate) async fn get(&self) -> Answer {
        self.send(Request::get("/")).await
    }

    pub(crate) async fn send(&self, request: http::request::Builder) -> Answer {
        self.service.clone().oneshot(request.body(()).unwrap()).await.unwrap()
    }
}

/// A header field's lines, joined as a proxy might.
pub(crate) fn field<B>(response: &Response<B>, name: &str) -> Option<String> {
    let lines: Vec<&str> = response.headers().get_all(name).iter().map(|line| line.to_str().unwrap()).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

pub(crate) async fn text<B>(response: Response<B>) -> String
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The message of a failing store. Clients must not see it.
pub(crate) const FAILURE: &str = "secret-host:6379 is on fire";

/// Returns a store that always fails.
pub(crate) fn failing_store() -> ScriptedStore {
    let store = ScriptedStore::new();
    store.fail(true);
    store
}

/// Returns a store in memory that answers at the second poll.
pub(crate) fn slow_store() -> ScriptedStore {
    let store = ScriptedStore::new();
    store.set_default(ScriptedAnswer::memory().yielding());
    store
}

/// The name of an operation, and the costs of its charges.
pub(crate) type Call = (&'static str, Vec<u64>);

/// What these tests change and read of a scripted store.
pub(crate) trait StoreControl {
    /// Makes the store fail, or decide again.
    fn fail(&self, fails: bool);

    /// Returns how many charges each operation had.
    fn charge_counts(&self) -> Vec<usize>;

    /// Returns all operations other than checks, in order.
    fn settled(&self) -> Vec<Call>;

    /// Waits until [`settled`](Self::settled) returns these.
    async fn until_settled(&self, expected: &[(&'static str, &[u64])]);

    /// Returns the units left of a global limit.
    fn left(&self, limit: &'static str, quota: Quota) -> u64;
}

impl StoreControl for ScriptedStore {
    fn fail(&self, fails: bool) {
        self.set_default(if fails { ScriptedAnswer::error(FAILURE) } else { ScriptedAnswer::memory() });
    }

    fn charge_counts(&self) -> Vec<usize> {
        self.operations().iter().map(|recorded| recorded.charges.len()).collect()
    }

    fn settled(&self) -> Vec<Call> {
        let name = |operation| match operation {
            Operation::Check => "check",
            Operation::Charge => "charge",
            Operation::Refund { .. } => "refund",
            Operation::Reset => "reset",
            Operation::Refuse => "refuse",
            Operation::Peek => "peek",
        };
        let settling = self.operations().into_iter().filter(|recorded| recorded.operation != Operation::Check);
        settling
            .map(|recorded| (name(recorded.operation), recorded.charges.iter().map(|charge| charge.units).collect()))
            .collect()
    }

    async fn until_settled(&self, expected: &[(&'static str, &[u64])]) {
        let reached = || self.settled().iter().map(|(name, costs)| (*name, &costs[..])).eq(expected.iter().copied());
        let wait = async {
            while !reached() {
                tokio::task::yield_now().await
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(5), wait).await;
        assert!(waited.is_ok(), "{:?} instead of {expected:?}", self.settled());
    }

    fn left(&self, limit: &'static str, quota: Quota) -> u64 {
        let Ok(decision) = self.memory().check(&[Charge::new(limit, &quota, &Key::EVERYONE).cost(0)]).into_inner();
        decision.statuses()[0].remaining()
    }
}

/// The whole seconds that `Retry-After` asks for.
pub(crate) fn retry_after<B>(response: &Response<B>) -> Duration {
    Duration::from_secs(field(response, "retry-after").unwrap().parse().unwrap())
}

#[expect(clippy::disallowed_methods, reason = "tokio's paused clock")]
pub(crate) fn tokio_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}
