/// A mistake in your configuration that only traffic shows.
///
/// The layer examines its first requests, and logs a warning with a fix. Read the mistakes with
/// [`mistakes`](crate::RateLimitHandle::mistakes). Turn a check off with
/// [`without_check`](crate::RateLimitLayer::without_check).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// A limit or list needs the peer address, but the server attached no address. Proof takes one request.
    NoPeerAddress,
    /// Peers with private addresses send forwarding headers, but you do not trust the peers.
    ///
    /// Proof takes 20 requests. A forwarded request that fits your proxies disproves the mistake.
    UntrustedProxy,
    /// Your trusted proxies never send the header with the address of the client.
    ///
    /// Proof takes 100 requests from the fourth path on, because health checks lack the header. A header disproves the
    /// mistake.
    NoForwardedAddress,
    /// A `when::route` lacks the prefix of a `nest`, or runs before a `Router` matches.
    ///
    /// Proof takes 100 requests. A match disproves the mistake.
    UnreachableLimit,
    /// Two layers count the same limit and key in the same store. Proof takes 20 requests.
    CountedTwice,
    /// A request gets 500 for more enforced limits than [`Charge::MOST`](crate::store::Charge::MOST).
    ///
    /// Proof takes one request.
    TooManyLimits,
    /// A request gets 500, because the store can [never decide](crate::store::Undecidable) the request.
    ///
    /// Proof takes one request.
    Undecidable,
    /// Requests get 503, because the policy is [unavailable](crate::Policy::unavailable).
    ///
    /// Proof takes one request.
    NoRules,
}

impl Check {
    pub(super) const fn proof(self) -> u64 {
        match self {
            Self::NoPeerAddress | Self::TooManyLimits | Self::Undecidable | Self::NoRules => 1,
            Self::UntrustedProxy | Self::CountedTwice => 20,
            Self::NoForwardedAddress | Self::UnreachableLimit => 100,
        }
    }
}
