/// A mistake in your configuration that only traffic shows.
///
/// The layer examines its first requests, counts the requests that show a mistake, and logs a warning with a fix once.
/// Read the mistakes with [`mistakes`](crate::RateLimitHandle::mistakes). Turn a check off with
/// [`without_check`](crate::RateLimitLayer::without_check).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// The server attached no peer address, but a limit or list needs the address of the client.
    ///
    /// Proof takes one request.
    NoPeerAddress,
    /// Peers with private addresses send forwarding headers, but you do not trust the peers as proxies.
    ///
    /// Proof takes 20 requests. A forwarded request that fits your proxies disproves the mistake.
    UntrustedProxy,
    /// Your trusted proxies never send the header with the address of the client.
    ///
    /// Proof takes 100 requests, from the fourth path on, because health checks of a proxy lack the header. A request
    /// with the header disproves the mistake.
    NoForwardedAddress,
    /// A `when::route` lacks the prefix of a `nest`, or runs before a `Router` has matched a route.
    ///
    /// Proof takes 100 requests. A request that the condition matches disproves the mistake.
    UnreachableLimit,
    /// Two layers count the same limit and key in the same store, so requests cost twice.
    ///
    /// Proof takes 20 requests.
    CountedTwice,
    /// A request has more enforced limits than [`Charge::MOST`](crate::store::Charge::MOST), and gets 500.
    ///
    /// Proof takes one request.
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
