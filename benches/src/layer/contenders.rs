//! A service that does nothing, bare and behind each layer. Both layers count by the peer's address.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use governor::middleware::{NoOpMiddleware, StateInformationMiddleware};
use tower::Layer;
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::PeerIpKeyExtractor;
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};

use super::service::{Answering, Answers, Trivial};

/// The treatment of requests behind a layer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Admitted, without header fields.
    Plain,
    /// Admitted, with the layer's default header fields.
    Headers,
    /// Refused, with those fields.
    Refused,
}

/// The time for which the first request of a layer that refuses uses up its quota.
const LONG: Duration = Duration::from_secs(86_400);
const NAMES: [&str; 3] = ["first", "second", "third"];

impl Manner {
    /// The burst of each of its limits, and how long a unit of it takes.
    const fn allowance(self) -> (u32, Duration) {
        match self {
            Self::Plain | Self::Headers => (60_000_000, Duration::from_secs(10)),
            Self::Refused => (1, LONG),
        }
    }
}

/// tower-quota's layer with `limits` limits on the peer's address.
pub(crate) fn tower_quota(manner: Manner, limits: usize) -> RateLimitLayer<MemoryStore> {
    let (burst, unit) = manner.allowance();
    let quota = Quota::new(1, unit).burst(u64::from(burst));
    let policy = NAMES
        .iter()
        .take(limits)
        .fold(Policy::new(), |policy, name| policy.limit(Limit::new(*name, quota).by(key::client_ip())));
    let layer = RateLimitLayer::new(MemoryStore::new(), policy);
    match manner {
        Manner::Plain => layer.headers([]),
        Manner::Headers | Manner::Refused => layer,
    }
}

/// One of tower_governor's layers, which have one limit each.
pub(crate) fn plain_governor() -> Result<GovernorLayer<PeerIpKeyExtractor, NoOpMiddleware, Body>, Box<dyn Error>> {
    let (burst, unit) = Manner::Plain.allowance();
    let config = GovernorConfigBuilder::default().period(unit).burst_size(burst).finish();
    Ok(GovernorLayer::new(Arc::new(config.ok_or("no such quota")?)))
}

/// One with header fields.
pub(crate) fn governor(
    manner: Manner,
) -> Result<GovernorLayer<PeerIpKeyExtractor, StateInformationMiddleware, Body>, Box<dyn Error>> {
    let (burst, unit) = manner.allowance();
    let config = GovernorConfigBuilder::default().period(unit).burst_size(burst).use_headers().finish();
    Ok(GovernorLayer::new(Arc::new(config.ok_or("no such quota")?)))
}

/// The service itself.
pub(crate) fn bare() -> Box<dyn Answers> {
    Box::new(Answering(Trivial))
}

/// Behind tower-quota.
pub(crate) fn behind_tower_quota(manner: Manner, limits: usize) -> Box<dyn Answers> {
    Box::new(Answering(tower_quota(manner, limits).layer(Trivial)))
}

/// Behind one of tower_governor's layers, or three.
pub(crate) fn behind_governor(manner: Manner, limits: usize) -> Result<Box<dyn Answers>, Box<dyn Error>> {
    let one = limits == 1;
    Ok(match manner {
        Manner::Plain if one => Box::new(Answering(plain_governor()?.layer(Trivial))),
        Manner::Plain => {
            let (outer, middle, inner) = (plain_governor()?, plain_governor()?, plain_governor()?);
            Box::new(Answering(outer.layer(middle.layer(inner.layer(Trivial)))))
        }
        _ if one => Box::new(Answering(governor(manner)?.layer(Trivial))),
        _ => {
            let (outer, middle, inner) = (governor(manner)?, governor(manner)?, governor(manner)?);
            Box::new(Answering(outer.layer(middle.layer(inner.layer(Trivial)))))
        }
    })
}
