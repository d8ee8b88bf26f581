//! The mistakes that a layer looks for.

/// A mistake in the configuration that only traffic shows.
///
/// The layer looks for these mistakes in its first requests. It logs each mistake once, as a `tracing` warning that says
/// how to fix the configuration, and counts the requests that show it. Read both with
/// [`RateLimitHandle::mistakes`](crate::RateLimitHandle::mistakes), and turn a check off with
/// [`RateLimitLayer::without_check`](crate::RateLimitLayer::without_check).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// The server attached no peer address, but a limit or a list needs the client's address.
    ///
    /// One request proves it.
    NoPeerAddress,
    /// Peers with private addresses send forwarding headers, but you do not trust them as proxies.
    ///
    /// 20 requests prove it. A forwarded request that fits your proxies disproves it.
    UntrustedProxy,
    /// Trusted proxies never send the header that the client's address is read from.
    ///
    /// 100 requests prove it, counted from the fourth path on, because health checks of a proxy lack the header too. One
    /// request with the header disproves it.
    NoForwardedAddress,
    /// A `when::route` lacks the prefix of a `nest`, or runs before a `Router` has matched a route.
    ///
    /// 100 such requests prove it. One request that the condition matches disproves it.
    UnreachableLimit,
    /// Two layers count the same limit and key in the same store, so each request costs twice.
    ///
    /// 20 requests prove it.
    CountedTwice,
    /// A request has more than [`Charge::MOST`](crate::store::Charge::MOST) enforced limits, and is refused with status 500.
    ///
    /// One request proves it.
    TooManyLimits,
}

impl Check {
    pub(super) const fn proof(self) -> u64 {
        match self {
            Self::NoPeerAddress | Self::TooManyLimits => 1,
            Self::UntrustedProxy | Self::CountedTwice => 20,
            Self::NoForwardedAddress | Self::UnreachableLimit => 100,
        }
    }
}
