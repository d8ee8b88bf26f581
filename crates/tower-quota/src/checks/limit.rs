//! The state of the checks for one limit of a policy.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Check, Checks, DISPROVABLE_PROOF};
use crate::head::RequestHead;
use crate::limit::Limit;

/// The state of the checks for one limit.
#[derive(Debug, Default)]
pub(super) struct WatchedLimit {
    /// Says whether it has applied to a request.
    has_applied: AtomicBool,
    /// The number of requests that it would apply to if its conditions compared the intended path.
    near_misses: AtomicU64,
    /// The number of requests that an outer layer has counted in the same store.
    pub(super) counted_twice: AtomicU64,
}

impl WatchedLimit {
    pub(super) fn applies(&self) {
        if !self.has_applied.load(Ordering::Relaxed) {
            self.has_applied.store(true, Ordering::Relaxed);
        }
    }

    /// Examines a request that the limit does not apply to.
    pub(super) fn does_not_apply(&self, checks: &Checks, limit: &Limit, head: &RequestHead<'_>) {
        let is_nested = head.is_nested();
        let may_be_mistaken =
            !self.has_applied.load(Ordering::Relaxed) && (is_nested || head.is_outside_router());
        if !may_be_mistaken || !limit.applies(&head.as_nested()) {
            return;
        }
        checks.observe(Check::UnreachableLimit, Some(limit.name), &self.near_misses, DISPROVABLE_PROOF, || {
            let why = if is_nested {
                "its `when::route` lacks the prefix of axum's `nest`. Write the prefix too, as in \
                 `when::route(\"/api/items\")`"
            } else {
                "its `when::route` is asked before any `Router` has matched a route. Add the layer by `Router::layer` or \
                 `Router::route_layer` instead of around the app, or write `when::path`"
            };
            format!("it has applied to no request, because {why}")
        });
    }

    /// Returns whether more requests can prove a mistake.
    pub(super) fn is_open(&self) -> bool {
        let misses = self.near_misses.load(Ordering::Relaxed);
        !self.has_applied.load(Ordering::Relaxed) && (1..DISPROVABLE_PROOF).contains(&misses)
    }
}
