/// A mistake in your configuration that only traffic shows.
///
/// The layer examines its first requests, and logs a warning with a fix. A single request is enough
/// unless a check says more. Read the mistakes with [`mistakes`](crate::RateLimitHandle::mistakes).
/// Turn a check off with [`without_check`](crate::RateLimitLayer::without_check).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// A limit or list needs the peer address, but the server attached no address.
    NoPeerAddress,
    /// Peers with private addresses send forwarding headers, but you do not trust the peers.
    ///
    /// The layer warns after 20 such requests, unless one comes through your proxies.
    UntrustedProxy,
    /// Your trusted proxies never send the header with the address of the client.
    ///
    /// The layer warns after 100 requests from the fourth path on, because health checks lack the
    /// header. A single header withdraws the suspicion.
    NoForwardedAddress,
    /// A `when::route` lacks the prefix of a `nest`, or runs before a `Router` matches.
    ///
    /// The layer warns after 100 requests without a match.
    UnreachableLimit,
    /// Two layers count the same limit and key in the same store. The layer warns after 20
    /// requests.
    CountedTwice,
    /// Two layers of this process count the same key by one name of a limit, in the same store, with different quotas.
    /// The layer warns after 20 requests through each of the layers.
    ///
    /// The layer does not compare limits with a quota that depends on the request, and policies with different
    /// [versions](crate::Policy::version).
    TwoQuotas,
    /// Another process counts the keys of a limit with another quota in the same store.
    ///
    /// The layer warns after three conversions of a key to the limit's quota, with ten minutes to an hour between the
    /// first and the last. A `RedisStore` reports conversions, at any time. The layer does not check a limit if the
    /// quota depends on the request or on the client.
    QuotasInTurn,
    /// A request gets 500, because it has more enforced limits than
    /// [`Charge::MOST`](crate::store::Charge::MOST).
    TooManyLimits,
    /// A request gets 500, because the store can [never decide](crate::store::Undecidable) the request.
    Undecidable,
    /// An upgraded connection holds no unit of a concurrency limit, because the connection keeps no
    /// [`Reservation`](crate::settle::Reservation).
    UnheldUpgrade,
    /// A handler settles a limit that does not exist. See [`Reservation::settle`](crate::settle::Reservation::settle).
    UnknownLimit,
    /// The final cost of a request exceeds the [longest debt](crate::settle#the-longest-debt).
    ExcessiveCost,
}

impl Check {
    pub(super) const fn threshold(self) -> u64 {
        match self {
            Self::NoPeerAddress
            | Self::TooManyLimits
            | Self::Undecidable
            | Self::UnheldUpgrade
            | Self::UnknownLimit
            | Self::ExcessiveCost => 1,
            Self::QuotasInTurn => 3,
            Self::UntrustedProxy | Self::CountedTwice | Self::TwoQuotas => 20,
            Self::NoForwardedAddress | Self::UnreachableLimit => 100,
        }
    }
}
