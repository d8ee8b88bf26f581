//! The mistakes that a layer looks for.

use core::sync::atomic::{AtomicU16, Ordering};

/// A mistake in the configuration that only traffic shows.
///
/// A layer looks for all of them in its first requests, logs each once as a warning of `tracing` that says what to write
/// instead, and counts the requests that showed it: see [`RateLimitHandle::mistakes`](crate::RateLimitHandle::mistakes).
/// [`RateLimitLayer::without_check`](crate::RateLimitLayer::without_check) turns one off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// The server attached no address of the peer, and a limit or a list needs the client's address.
    ///
    /// Proved by one request.
    NoPeerAddress,
    /// Peers with private addresses send forwarding headers and are not trusted as proxies.
    ///
    /// Proved by 20 requests.
    UntrustedProxy,
    /// Trusted proxies never send the header that the client's address is read from.
    ///
    /// Health checks of a proxy have no such header either. So it is proved by 100 requests after requests to four
    /// different paths. One request with the header disproves it.
    NoForwardedAddress,
    /// No request that a limit applies to has the key that it counts by.
    ///
    /// Proved by 1,000 requests without the key, and disproved by one with it.
    KeyNeverFound,
    /// A limit applies to no request, because its `when::route` lacks the prefix of a `nest`, or runs before a route is
    /// matched.
    ///
    /// Proved by 100 such requests, and disproved by one that the limit applies to.
    UnreachableLimit,
    /// Two layers count one limit for the same key in the same store, so each request is counted twice.
    ///
    /// Proved by 20 requests.
    CountedTwice,
    /// All requests are refused.
    ///
    /// Proved by 1,000 requests that were blocked, that cost more than the capacity of a limit, or that a limit on all
    /// clients together refused; and disproved by one that a limit or the allow list admits. A client's own limit
    /// proves nothing: one busy client may have been over its quota before the server started.
    RefusesAll,
    /// The policy has no limits and blocks no client.
    ///
    /// Proved by 1,000 requests, since a policy may come later.
    NoLimits,
    /// More than [`Charge::MOST`](crate::Charge::MOST) enforced limits apply to a request, which is refused with status 500.
    ///
    /// Proved by one request.
    TooManyLimits,
}

impl Check {
    /// All checks, in the order of their numbers.
    pub(super) const ALL: [Self; 9] = [
        Self::NoPeerAddress,
        Self::UntrustedProxy,
        Self::NoForwardedAddress,
        Self::KeyNeverFound,
        Self::UnreachableLimit,
        Self::CountedTwice,
        Self::RefusesAll,
        Self::NoLimits,
        Self::TooManyLimits,
    ];

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// A set of checks.
#[derive(Debug, Default)]
pub(super) struct CheckSet(AtomicU16);

impl CheckSet {
    pub(super) fn insert(&self, check: Check) {
        self.0.fetch_or(1 << check.index(), Ordering::Relaxed);
    }

    pub(super) fn has(&self, check: Check) -> bool {
        self.0.load(Ordering::Relaxed) & (1 << check.index()) != 0
    }

    pub(super) fn has_all(&self) -> bool {
        self.0.load(Ordering::Relaxed).count_ones() as usize == Check::ALL.len()
    }
}
