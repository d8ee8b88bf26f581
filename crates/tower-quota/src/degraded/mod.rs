//! Decisions about requests while the store is unavailable.

mod local;
mod outage;
mod recent;

pub(crate) use self::local::LocalCounters;
pub(crate) use self::outage::OutageLog;
pub use self::recent::RecentOutage;

/// The choice of a limit for requests while the store is unavailable.
///
/// With several limits, the layer decides in this order:
///
/// 1. A request that the store has refused stays refused until the request fits, for up to an hour.
/// 2. If a limit has `Refuse`, the layer refuses the request, or [flags](crate::Over::Flag) the request if the limit
///    flags.
/// 3. This process decides the limits with `Local` together. [Shadows](crate::Limit::shadow) count only next to
///    another limit.
/// 4. Limits with `Allow` are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStoreFailure {
    /// Lets the request through (fail open).
    ///
    /// `Allow` is the default, but an [overloaded](crate::store::Overloaded) store defaults to [`Local`](Self::Local).
    #[default]
    #[doc(alias = "fail open")]
    Allow,
    /// Refuses the request with 503, or `UNAVAILABLE` for gRPC (fail closed).
    ///
    /// Use `Refuse` for logins and payments, where uncounted requests do most harm. A limit with
    /// [`Over::Flag`](crate::Over::Flag) flags every request instead, so that your handler shows the challenge.
    #[doc(alias = "fail closed")]
    Refuse,
    /// Counts the request in this process, by this instance's share of the quota.
    ///
    /// Use `Local` to protect the systems behind your service, and set the number of
    /// [instances](crate::Policy::instances).
    ///
    /// A recently refused client starts with a share of the remaining units. Other clients start full, so a client may
    /// get an extra share per outage and instance. Local counters end at the store's first answer after an hour without
    /// local decisions. Costs above the share get a 503.
    Local,
}

/// Marks a request that was decided without the store, and the response, in the extensions.
///
/// If you [attach decisions](crate::RateLimitLayer::attach_decision), the [`Decision`](crate::Decision) covers the
/// [local](OnStoreFailure::Local) limits only. Without a decision, the request was not counted.
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
