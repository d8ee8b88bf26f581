//! A service that does nothing, bare and behind each layer. Both layers count by the peer's address.

use std::convert::Infallible;
use std::error::Error;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response};
use axum::routing::get;
use governor::middleware::{NoOpMiddleware, StateInformationMiddleware};
use tower::{Layer, Service};
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::PeerIpKeyExtractor;
use tower_quota::{
    HeaderStyle, Limit, MemoryStore, Policy, Quota, RateLimitLayer, Reset, Store, key,
};

/// The treatment of requests behind a layer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// Admitted, without header fields.
    Plain,
    /// Admitted, with the layer's default header fields.
    Headers,
    /// Admitted, with the `X-RateLimit` fields alone: three of tower-quota, two of tower_governor.
    SameFields,
    /// Refused, with those fields.
    Refused,
}

/// The time for which the first request of a layer that refuses uses up its quota.
const LONG: Duration = Duration::from_secs(86_400);
const NAMES: [&str; 3] = ["first", "second", "third"];

impl Treatment {
    /// Returns the burst of each limit, and the time in which one unit comes back.
    const fn allowance(self) -> (u32, Duration) {
        match self {
            Self::Plain | Self::Headers | Self::SameFields => (60_000_000, Duration::from_secs(10)),
            Self::Refused => (1, LONG),
        }
    }
}

/// Creates tower-quota's layer over a memory store, with `limits` limits on the peer's address.
pub(crate) fn tower_quota(treatment: Treatment, limits: usize) -> RateLimitLayer<MemoryStore> {
    tower_quota_over(MemoryStore::new(), treatment, limits)
}

/// Creates tower-quota's layer over a store, with `limits` limits on the peer's address.
pub(crate) fn tower_quota_over<S: Store>(
    store: S,
    treatment: Treatment,
    limits: usize,
) -> RateLimitLayer<S> {
    let (burst, unit) = treatment.allowance();
    let quota = Quota::new(1, unit).burst(u64::from(burst));
    let policy = NAMES
        .iter()
        .take(limits)
        .fold(Policy::new(), |policy, name| {
            policy.limit(Limit::new(*name, quota).by(key::client_ip()))
        });
    let layer = RateLimitLayer::new(store, policy);
    match treatment {
        Treatment::Plain => layer.headers([]),
        Treatment::SameFields => layer.headers([HeaderStyle::XRateLimit(Reset::Delta)]),
        Treatment::Headers | Treatment::Refused => layer,
    }
}

/// Creates a layer of tower_governor that writes header fields. It has one limit.
pub(crate) fn governor(
    treatment: Treatment,
) -> Result<GovernorLayer<PeerIpKeyExtractor, StateInformationMiddleware, Body>, Box<dyn Error>> {
    let (burst, unit) = treatment.allowance();
    let mut config = GovernorConfigBuilder::default();
    let config = config.period(unit).burst_size(burst).use_headers().finish();
    Ok(GovernorLayer::new(Arc::new(config.ok_or("no such quota")?)))
}

/// Creates a layer of tower_governor without header fields.
fn plain_governor()
-> Result<GovernorLayer<PeerIpKeyExtractor, NoOpMiddleware, Body>, Box<dyn Error>> {
    let (burst, unit) = Treatment::Plain.allowance();
    let mut config = GovernorConfigBuilder::default();
    let config = config.period(unit).burst_size(burst).finish();
    Ok(GovernorLayer::new(Arc::new(config.ok_or("no such quota")?)))
}

/// Creates the bare service.
pub(crate) fn bare() -> Box<dyn Answers> {
    Box::new(Answering(Trivial))
}

/// Creates the service behind tower-quota.
pub(crate) fn behind_tower_quota(treatment: Treatment, limits: usize) -> Box<dyn Answers> {
    Box::new(Answering(tower_quota(treatment, limits).layer(Trivial)))
}

/// Creates an axum app of one route behind tower-quota, without header fields.
pub(crate) fn routed(limits: usize) -> Box<dyn Answers> {
    let app: Router = Router::new().route("/", get(async || {}));
    Box::new(Answering(app.layer(tower_quota(Treatment::Plain, limits))))
}

/// Creates the service behind one of tower_governor's layers, or three.
pub(crate) fn behind_governor(
    treatment: Treatment,
    limits: usize,
) -> Result<Box<dyn Answers>, Box<dyn Error>> {
    macro_rules! behind {
        ($layer:expr) => {
            if limits == 1 {
                Box::new(Answering($layer.layer(Trivial)))
            } else {
                let (outer, middle, inner) = ($layer, $layer, $layer);
                Box::new(Answering(outer.layer(middle.layer(inner.layer(Trivial)))))
            }
        };
    }
    Ok(if treatment == Treatment::Plain {
        behind!(plain_governor()?)
    } else {
        behind!(governor(treatment)?)
    })
}

/// A service of any type that answers without waiting.
pub(crate) trait Answers {
    /// Sends a request. Returns whether the answer was a success.
    fn admits(&mut self, request: Request<Body>) -> bool;
}

/// A tower service as `Answers`.
pub(crate) struct Answering<S>(pub(crate) S);

impl<S, B> Answers for Answering<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible>,
{
    fn admits(&mut self, request: Request<Body>) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        if self.0.poll_ready(&mut context).is_pending() {
            return false;
        }
        match pin!(self.0.call(request)).poll(&mut context) {
            Poll::Ready(Ok(response)) => response.status().is_success(),
            Poll::Pending => false,
        }
    }
}

/// Answers with an empty body.
#[derive(Clone)]
pub(crate) struct Trivial;

impl Service<Request<Body>> for Trivial {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Ok(Response::new(Body::empty())))
    }
}

/// Creates a request as axum passes it on, with the peer's address attached.
pub(crate) fn request() -> Request<Body> {
    let mut request = Request::new(Body::empty());
    request
        .extensions_mut()
        .insert(ConnectInfo(SocketAddr::from(([192, 0, 2, 1], 4_321))));
    request
}
