//! Decisions about requests while the store is unavailable.

mod local;
mod outage;

pub(crate) use self::local::LocalCounters;
pub(crate) use self::outage::OutageLog;

/// The choice of a limit for requests while the store is unavailable.
///
/// A request often has several limits. In this order:
///
/// 1. A request that the store has refused, and that would not fit yet, is refused with the remaining wait.
/// 2. If one that applies has `Refuse`, the request is refused.
/// 3. Otherwise the limits with `Local` are decided together, in this process; shadows only beside an enforced limit.
/// 4. Limits with `Allow` are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStoreFailure {
    /// Lets the request through, as if the limit did not exist: fail open.
    ///
    /// It is the default because every request depends on the limiter. Only an [overloaded](crate::Overloaded) store has
    /// the default [`Local`](Self::Local).
    #[default]
    #[doc(alias = "fail open")]
    Allow,
    /// Refuses the request, with 503 or `UNAVAILABLE` for gRPC: fail closed.
    ///
    /// For logins and payments, where an uncounted request is worse than a refused one.
    #[doc(alias = "fail closed")]
    Refuse,
    /// Counts the request in this process, by this instance's share of the quota.
    ///
    /// [`Policy::instances`](crate::Policy::instances) sets the [share](tower_quota_core::Quota::divided). For limits
    /// that protect the systems behind the service.
    ///
    /// Local counters start from the store's last answer to this instance: as large a part of the share is used as of
    /// the quota, in full units. They are discarded at the store's first success after an hour without local decisions,
    /// and they are not added to the store. A client that this instance has not seen lately starts full. So it may get,
    /// once per outage and instance, its share on top of the units that the store has admitted. A store that answers now
    /// and then, or one with a single failed node, releases no limited client.
    ///
    /// A request that costs more than the share holds at once is refused with 503, since the store would admit it.
    Local,
}

/// Marks a request that was decided without the store, and its response, in their extensions.
///
/// A [`Decision`](crate::Decision) beside it, where the layer [attaches](crate::RateLimitLayer::attach_decision) any,
/// is that of the [local](OnStoreFailure::Local) limits alone. Without one, nothing was counted.
///
/// ```
/// use axum::Extension;
/// use tower_quota::{Decision, Degraded};
///
/// async fn handler(degraded: Option<Extension<Degraded>>, decision: Option<Extension<Decision>>) -> &'static str {
///     match (degraded, decision) {
///         (None, _) => "counted by the store",
///         (Some(_), Some(_)) => "counted by this instance",
///         (Some(_), None) => "not counted",
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Degraded;
