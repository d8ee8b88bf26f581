//! What happens to requests while the store is unavailable.

mod local;

pub(crate) use self::local::LocalCounters;

/// What a limit does with a request while the store is unavailable.
///
/// A request often has several limits. If one that applies says `Refuse`, it is refused; otherwise those that say `Local`
/// are decided together, in this process; those that say `Allow` are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStoreFailure {
    /// Lets the request through, as if the limit were not there: fail open. It is the default because a limiter must not
    /// take the service down: what it protects from is rare, and every request depends on it.
    #[default]
    #[doc(alias = "fail open")]
    Allow,
    /// Refuses the request, with 503 or `UNAVAILABLE` for gRPC: fail closed. For logins and payments, where uncounted is
    /// worse than unserved.
    #[doc(alias = "fail closed")]
    Refuse,
    /// Counts the request in this process, by this instance's [share](tower_quota_core::Quota::divided) of the quota: see
    /// [`Policy::instances`](crate::Policy::instances). For limits that protect what stands behind the service.
    ///
    /// Local counters start full. They are discarded at the store's first success after a second without local decisions,
    /// and the store learns nothing of them. So a client may have, once per outage and instance, its share on top of what
    /// the store has admitted; a store of which only a part is away, or that answers now and then, releases no client.
    ///
    /// A request that costs more than the share holds at once is refused with 503, since the store would admit it.
    Local,
}

/// Marks a request that was decided without the store, and its response, in their extensions.
///
/// A [`Decision`](crate::Decision) beside it, where the layer [attaches](crate::RateLimitLayer::attach_decision) any, is
/// that of the [local](OnStoreFailure::Local) limits alone; where there is none, nothing was counted.
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
