//! The layer.

use core::fmt;
use std::sync::Arc;

use tollgate_core::Store;
use tower_layer::Layer;

use super::gate::Gate;
use super::service::RateLimit;
use crate::answer::{ProblemDetails, Refusal};
use crate::plan::Plan;
use crate::policy::Policy;

/// Puts a [`Policy`] in front of services, see the [crate](crate). Clones, and all the services they make, share one
/// store and one policy.
///
/// The only type parameter is the store. `RateLimitLayer<BoxStore>` is the layer whose store is chosen at run time.
#[must_use]
pub struct RateLimitLayer<S> {
    gate: Arc<Gate<S>>,
}

impl<S: Store> RateLimitLayer<S> {
    /// A layer that decides by this policy and counts in this store.
    pub fn new(store: S, policy: Policy) -> Self {
        let gate =
            Gate { store: Arc::new(store), plan: Arc::new(Plan::new(policy)), refusal: Arc::new(ProblemDetails) };
        Self { gate: Arc::new(gate) }
    }

    /// Answers refused HTTP requests this way instead of with [`ProblemDetails`].
    pub fn refusal(self, refusal: impl Refusal) -> Self {
        let gate =
            Gate { store: Arc::clone(&self.gate.store), plan: Arc::clone(&self.gate.plan), refusal: Arc::new(refusal) };
        Self { gate: Arc::new(gate) }
    }
}

impl<Svc, S> Layer<Svc> for RateLimitLayer<S> {
    type Service = RateLimit<Svc, S>;

    fn layer(&self, inner: Svc) -> Self::Service {
        RateLimit::new(inner, Arc::clone(&self.gate))
    }
}

impl<S> Clone for RateLimitLayer<S> {
    fn clone(&self) -> Self {
        Self { gate: Arc::clone(&self.gate) }
    }
}

impl<S: fmt::Debug> fmt::Debug for RateLimitLayer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer").field("gate", &self.gate).finish()
    }
}
