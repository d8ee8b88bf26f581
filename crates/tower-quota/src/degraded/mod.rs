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
    /// It is the default because every request depends on the limiter. Only an [overloaded](crate::store::Overloaded) store has
    /// the default [`Local`](Self::Local).
    #[default]
    #[doc(alias = "fail open")]
    Allow,
    /// Refuses the request, with 503 or `UNAVAILABLE` for gRPC: fail closed.
    ///
    /// For logins and payments, where an uncounted request is worse than a refused one.
    #[doc(alias = "fail closed")]
    Refuse,
    /// Counts the request in this process, by this instance's [share](crate::Policy::instances) of the quota.
    ///
    /// Choose it for limits that protect the systems behind the service.
    ///
    /// A client that was refused lately starts with the units that the last refusal leaves, as a part of the share. Other
    /// clients start full, so each may get the share of an instance once per outage on top of the quota. The layer discards
    /// local counters at the store's first answer after an hour without local decisions.
    ///
    /// The answer is 503 if a request costs more than the share holds, because the store would admit the request.
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
