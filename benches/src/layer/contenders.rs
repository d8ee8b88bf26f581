//! A service that does nothing, bare and behind each layer. Both layers count by the peer's address.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use governor::middleware::{NoOpMiddleware, StateInformationMiddleware};
use tower::Layer;
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::PeerIpKeyExtractor;
use tower_quota::{
    HeaderStyle, Limit, MemoryStore, Policy, Quota, RateLimitLayer, Reset, Store, key,
};

use super::service::{Answering, Answers, Trivial};

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

/// Creates a layer of tower_governor, which has one limit.
pub(crate) fn plain_governor()
-> Result<GovernorLayer<PeerIpKeyExtractor, NoOpMiddleware, Body>, Box<dyn Error>> {
    let (burst, unit) = Treatment::Plain.allowance();
    let config = GovernorConfigBuilder::default()
        .period(unit)
        .burst_size(burst)
        .finish();
    Ok(GovernorLayer::new(Arc::new(config.ok_or("no such quota")?)))
}

/// Creates a layer of tower_governor that writes header fields.
pub(crate) fn governor(
    treatment: Treatment,
) -> Result<GovernorLayer<PeerIpKeyExtractor, StateInformationMiddleware, Body>, Box<dyn Error>> {
    let (burst, unit) = treatment.allowance();
    let config = GovernorConfigBuilder::default()
        .period(unit)
        .burst_size(burst)
        .use_headers()
        .finish();
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
    let one = limits == 1;
    Ok(match treatment {
        Treatment::Plain if one => Box::new(Answering(plain_governor()?.layer(Trivial))),
        Treatment::Plain => {
            let (outer, middle, inner) = (plain_governor()?, plain_governor()?, plain_governor()?);
            Box::new(Answering(outer.layer(middle.layer(inner.layer(Trivial)))))
        }
        _ if one => Box::new(Answering(governor(treatment)?.layer(Trivial))),
        _ => {
            let (outer, middle, inner) = (
                governor(treatment)?,
                governor(treatment)?,
                governor(treatment)?,
            );
            Box::new(Answering(outer.layer(middle.layer(inner.layer(Trivial)))))
        }
    })
}
