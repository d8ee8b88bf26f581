//! An inner service that records its requests, policies, layers with a stopped clock, and assertions on fields.
#![allow(dead_code, reason = "no test program uses everything")]

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, Request, Response};
use http_body_util::{BodyExt, Full};
use tower::{Layer, Service, ServiceExt};
use tower_quota::{
    Decision, HeaderStyle, Limit, MemoryStore, Name, Policy, Quota, RateLimit, RateLimitHandle,
    RateLimitLayer, Reset, ResponseBody, Store,
};
use tower_quota_testkit::{ManualClock, ScriptedAnswer, ScriptedStore};

/// A service that answers `inner` and records the extensions of each request.
#[derive(Clone, Default)]
pub(crate) struct Inner {
    pub(crate) requests: Arc<Mutex<Vec<Extensions>>>,
}

impl Inner {
    pub(crate) fn calls(&self) -> usize {
        self.requests.lock().unwrap().len()
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
        self.requests
            .lock()
            .unwrap()
            .push(request.extensions().clone());
        ready(Ok(Response::new(Full::from("inner"))))
    }
}

/// Returns a token bucket of this many requests per minute, without a key.
pub(crate) fn per_minute(name: impl Into<Name>, units: u64) -> Limit {
    Limit::new(name, Quota::per_minute(units))
}

/// Returns a token bucket of this many requests per hour, without a key.
pub(crate) fn per_hour(name: impl Into<Name>, units: u64) -> Limit {
    Limit::new(name, Quota::per_hour(units))
}

/// Returns a token bucket of this many requests per second, without a key.
pub(crate) fn per_second(name: impl Into<Name>, units: u64) -> Limit {
    Limit::new(name, Quota::per_second(units))
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Returns a policy with this limit.
pub(crate) fn policy_of(limit: Limit) -> Policy {
    Policy::new().limit(limit)
}

/// Returns an empty store on a stopped clock.
pub(crate) fn stopped_store() -> MemoryStore {
    MemoryStore::with_clock(1_000, ManualClock::default())
}

/// Returns a layer with an empty store on a stopped clock.
pub(crate) fn stopped_layer(policy: Policy) -> RateLimitLayer<MemoryStore> {
    RateLimitLayer::new(stopped_store(), policy)
}

/// Returns a service behind a layer, and the handle of the layer.
pub(crate) fn serve<S: Store>(
    layer: RateLimitLayer<S>,
) -> (RateLimit<Inner, S>, RateLimitHandle<S>) {
    (layer.layer(Inner::default()), layer.handle())
}

/// Returns the decision that a response carries.
pub(crate) fn decision_of<B>(response: &Response<B>) -> &Decision {
    response.extensions().get().unwrap()
}

/// Sends a request to a clone of a service.
pub(crate) async fn answer_to<S, R>(service: &S, request: R) -> S::Response
where
    S: Service<R> + Clone,
    S::Error: std::fmt::Debug,
{
    service.clone().oneshot(request).await.unwrap()
}

/// Sends `GET /` to a clone of a service.
pub(crate) async fn answer_of<S>(service: &S) -> S::Response
where
    S: Service<Request<()>> + Clone,
    S::Error: std::fmt::Debug,
{
    answer_to(service, Request::new(())).await
}

/// Draft 11, and the `X-RateLimit` fields with a reset that does not depend on the clock.
pub(crate) const WITH_X: [HeaderStyle; 2] =
    [HeaderStyle::Draft11, HeaderStyle::XRateLimit(Reset::Delta)];

pub(crate) type Answer = Response<ResponseBody<Full<Bytes>>>;

/// A policy over `Inner`, counted in memory.
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
        let layer = RateLimitLayer::new(MemoryStore::with_clock(1_000, clock.clone()), policy)
            .attach_decision();
        Self {
            service: change(layer).layer(inner.clone()),
            inner,
            clock,
        }
    }

    pub(crate) async fn get(&self) -> Answer {
        self.send(Request::get("/")).await
    }

    pub(crate) async fn send(&self, request: http::request::Builder) -> Answer {
        answer_to(&self.service, request.body(()).unwrap()).await
    }
}

/// Returns the lines of a header field, joined as a proxy may do it.
pub(crate) fn field<B>(response: &Response<B>, name: &str) -> Option<String> {
    let lines: Vec<&str> = response
        .headers()
        .get_all(name)
        .iter()
        .map(|line| line.to_str().unwrap())
        .collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// Asserts the lines of a header field, joined.
#[track_caller]
pub(crate) fn assert_field<B>(response: &Response<B>, name: &str, expected: impl AsRef<str>) {
    let field = field(response, name);
    assert_eq!(field.as_deref(), Some(expected.as_ref()), "{name}");
}

#[track_caller]
pub(crate) fn assert_no_field<B>(response: &Response<B>, name: &str) {
    assert_eq!(field(response, name), None, "{name}");
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
    store.set_default(ScriptedAnswer::error(FAILURE));
    store
}

/// Returns the wait in `Retry-After`.
pub(crate) fn retry_after<B>(response: &Response<B>) -> Duration {
    secs(field(response, "retry-after").unwrap().parse().unwrap())
}
