//! The layer.

use core::fmt;
use std::sync::Arc;

use tollgate_core::{MemoryStore, Store};
use tower_layer::Layer;

use super::gate::Gate;
use super::local::Local;
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
        Self::of(Gate {
            store: Arc::new(store),
            plan: Arc::new(Plan::new(policy)),
            local: Arc::default(),
            refusal: Arc::new(ProblemDetails),
        })
    }

    /// Answers refused HTTP requests this way instead of with [`ProblemDetails`].
    pub fn refusal(self, refusal: impl Refusal) -> Self {
        Self::of(Gate { refusal: Arc::new(refusal), ..self.parts() })
    }

    /// Where [`OnStoreFailure::Local`](crate::OnStoreFailure::Local) limits are counted while the store is sick, instead
    /// of in a memory store with its default capacity. Layers that are given clones of one store count together, which
    /// is right for layers whose limits have the same names and keys. It is cleared when the real store is well again:
    /// let nothing else count in it.
    pub fn local_store(self, store: MemoryStore) -> Self {
        Self::of(Gate { local: Arc::new(Local::new(store)), ..self.parts() })
    }

    fn of(gate: Gate<S>) -> Self {
        Self { gate: Arc::new(gate) }
    }

    /// What the gate is made of, to make another.
    fn parts(&self) -> Gate<S> {
        let Gate { store, plan, local, refusal } = &*self.gate;
        Gate {
            store: Arc::clone(store),
            plan: Arc::clone(plan),
            local: Arc::clone(local),
            refusal: Arc::clone(refusal),
        }
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
