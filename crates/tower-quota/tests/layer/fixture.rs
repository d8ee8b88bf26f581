//! An inner service that remembers what reached it, and stores that fail or take their time.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tower::{Layer, Service, ServiceExt};
use tower_quota::{
    Charge, Decision, Degraded, HeaderStyle, Key, MemoryStore, Operation, Policy, Quota, RateLimit, RateLimitLayer,
    Reset, ResponseBody, Store, Timestamp,
};
use tower_quota_testkit::ManualClock;

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
    pub(crate) clock: ManualClock,
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
        let layer = RateLimitLayer::new(MemoryStore::with_clock(1_000, clock.clone()), policy).attach_decision();
        let layer = change(layer);
        Self { service: layer.layer(inner.clone()), inner, clock }
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

/// A store that cannot be asked.
#[derive(Clone, Debug)]
pub(crate) struct BrokenStore;

/// Why not.
#[derive(Debug)]
pub(crate) struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("secret-host:6379 is on fire")
    }
}

impl std::error::Error for Broken {}

impl Store for BrokenStore {
    type Error = Broken;
    type Future = Ready<Result<Decision, Broken>>;

    fn apply(&self, _: Operation, _: &[Charge<'_>]) -> Self::Future {
        ready(Err(Broken))
    }
}

/// A store in memory that fails on command.
#[derive(Clone, Debug)]
pub(crate) struct FickleStore {
    memory: MemoryStore,
    sick: Arc<AtomicBool>,
}

impl FickleStore {
    pub(crate) fn new(clock: &ManualClock) -> Self {
        Self { memory: MemoryStore::with_clock(1_000, clock.clone()), sick: Arc::default() }
    }

    pub(crate) fn fail(&self, sick: bool) {
        self.sick.store(sick, Ordering::Relaxed);
    }
}

impl Store for FickleStore {
    type Error = Broken;
    type Future = Ready<Result<Decision, Broken>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        if self.sick.load(Ordering::Relaxed) {
            return ready(Err(Broken));
        }
        let Ok(decision) = self.memory.apply(operation, charges).into_inner();
        ready(Ok(decision))
    }
}

/// A store in memory that answers at the second poll, and remembers how many charges each call brought.
#[derive(Clone, Debug)]
pub(crate) struct SlowStore {
    memory: MemoryStore,
    calls: Arc<Mutex<Vec<usize>>>,
}

impl SlowStore {
    pub(crate) fn new() -> Self {
        Self { memory: MemoryStore::with_clock(1_000, ManualClock::default()), calls: Arc::default() }
    }

    pub(crate) fn calls(&self) -> Vec<usize> {
        self.calls.lock().unwrap().clone()
    }
}

impl Store for SlowStore {
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Decision, Infallible>> + Send>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        self.calls.lock().unwrap().push(charges.len());
        let decided = self.memory.apply(operation, charges);
        Box::pin(async move {
            tokio::task::yield_now().await;
            decided.await
        })
    }
}

/// What a store was asked to do, and the costs of the charges.
pub(crate) type Call = (&'static str, Vec<u64>);

/// A store in memory that remembers what it was asked to do, and with which costs; it can be slow, or fail.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    pub(crate) memory: MemoryStore,
    pub(crate) clock: ManualClock,
    calls: Arc<Mutex<Vec<Call>>>,
    slow: bool,
    sick: Arc<AtomicBool>,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        let clock = ManualClock::default();
        let memory = MemoryStore::with_clock(1_000, clock.clone());
        Self { memory, clock, calls: Arc::default(), slow: false, sick: Arc::default() }
    }

    /// Answers at the second poll.
    pub(crate) fn slow() -> Self {
        Self { slow: true, ..Self::new() }
    }

    pub(crate) fn fail(&self, sick: bool) {
        self.sick.store(sick, Ordering::Relaxed);
    }

    /// What it was asked for but checks, in order.
    pub(crate) fn settled(&self) -> Vec<Call> {
        self.calls.lock().unwrap().iter().filter(|(operation, _)| *operation != "check").cloned().collect()
    }

    /// Waits for that to be so.
    pub(crate) async fn until_settled(&self, expected: &[(&'static str, &[u64])]) {
        let reached = || self.settled().iter().map(|(name, costs)| (*name, &costs[..])).eq(expected.iter().copied());
        let wait = async {
            while !reached() {
                tokio::task::yield_now().await
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(5), wait).await;
        assert!(waited.is_ok(), "{:?} instead of {expected:?}", self.settled());
    }

    /// Units left of a limit on everyone.
    pub(crate) fn left(&self, limit: &'static str, quota: Quota) -> u64 {
        let Ok(decision) = self.memory.check(&[Charge::new(limit, &quota, &Key::EVERYONE).cost(0)]).into_inner();
        decision.statuses()[0].remaining()
    }
}

impl Store for Recorder {
    type Error = Broken;
    type Future = Pin<Box<dyn Future<Output = Result<Decision, Broken>> + Send>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let name = match operation {
            Operation::Check => "check",
            Operation::Charge => "charge",
            Operation::Refund { .. } => "refund",
            Operation::Reset => "reset",
            Operation::Refuse => "refuse",
            Operation::Peek => "peek",
        };
        self.calls.lock().unwrap().push((name, charges.iter().map(Charge::units).collect()));
        if self.sick.load(Ordering::Relaxed) {
            return Box::pin(ready(Err(Broken)));
        }
        let Ok(decision) = self.memory.apply(operation, charges).into_inner();
        let slow = self.slow;
        Box::pin(async move {
            if slow {
                tokio::task::yield_now().await;
            }
            Ok(decision)
        })
    }
}

/// The whole seconds that `Retry-After` asks for.
pub(crate) fn retry_after<B>(response: &Response<B>) -> Duration {
    Duration::from_secs(field(response, "retry-after").unwrap().parse().unwrap())
}

/// A store that decides by a given decision: for what no quota leads to.
#[derive(Clone, Debug)]
pub(crate) struct ScriptedStore(pub(crate) Vec<tower_quota::LimitStatus>);

impl Store for ScriptedStore {
    type Error = Infallible;
    type Future = Ready<Result<Decision, Infallible>>;

    fn apply(&self, _: Operation, _: &[Charge<'_>]) -> Self::Future {
        ready(Ok(Decision::from_statuses(Operation::Check, Timestamp::EPOCH, self.0.clone())))
    }
}

#[expect(clippy::disallowed_methods, reason = "tokio's paused clock")]
pub(crate) fn tokio_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}
