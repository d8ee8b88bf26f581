//! What is known of a limit while its requests are watched.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Check, Checks, MANY};
use crate::head::RequestHead;
use crate::limit::Limit;

/// What is known of one limit.
#[derive(Debug, Default)]
pub(super) struct WatchedLimit {
    /// Says whether it has applied to a request.
    has_applied: AtomicBool,
    /// The requests that it would have applied to, had its conditions compared what was meant.
    near_misses: AtomicU64,
    /// The requests that it counted in the same store as a layer around this one.
    pub(super) counted_twice: AtomicU64,
}

impl WatchedLimit {
    pub(super) fn applies(&self) {
        if !self.has_applied.load(Ordering::Relaxed) {
            self.has_applied.store(true, Ordering::Relaxed);
        }
    }

    /// Looks at a request that the limit does not apply to.
    pub(super) fn does_not_apply(&self, checks: &Checks, limit: &Limit, head: &RequestHead<'_>) {
        let is_nested = head.is_nested();
        let may_be_mistaken = !self.has_applied.load(Ordering::Relaxed) && (is_nested || head.is_outside_router());
        if !may_be_mistaken || !limit.applies(&head.as_nested()) {
            return;
        }
        checks.observe(Check::UnreachableLimit, Some(limit.name), &self.near_misses, MANY, || {
            let why = if is_nested {
                "its condition matches the path inside axum's `nest` and is compared with the path that the client asked \
                 for. Write the prefix too, as in `when::path(\"/api/items\")` or `when::route(\"/api/items\")`"
            } else {
                "its `when::route` is asked before any `Router` has matched a route. Add the layer by `Router::layer` or \
                 `Router::route_layer` instead of around the app, or write `when::path`"
            };
            format!("it has applied to no request, because {why}")
        });
    }

    /// Returns whether more requests could prove something.
    pub(super) fn is_open(&self) -> bool {
        let misses = self.near_misses.load(Ordering::Relaxed);
        !self.has_applied.load(Ordering::Relaxed) && (1..MANY).contains(&misses)
    }
}
