use core::time::Duration;

use tower_quota_core::KeyHasher;

/// The options of a [`Leased`](crate::Leased) store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct LeaseOptions {
    pub(crate) longest: Duration,
    pub(crate) keys: usize,
    pub(crate) hasher: Option<KeyHasher>,
}

impl LeaseOptions {
    /// The default of [`longest`](Self::longest), half a second.
    pub const DEFAULT_LONGEST: Duration = Duration::from_millis(500);
    /// The default of [`keys`](Self::keys), about 5 MB.
    pub const DEFAULT_KEYS: usize = 16_384;

    /// Sets the longest term of a lease.
    ///
    /// Longer leases save calls. Shorter leases give up less of a burst, and lose less when an instance crashes. A term
    /// below 5 ms turns leases off. All instances that share a store need the same value, because the term decides the
    /// quota in the store.
    pub const fn longest(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Sets the number of keys whose demand an instance observes. The store decides all other keys.
    pub const fn keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// Sets the [hasher](tower_quota_core::RefusalCache::hasher) of the keys, for simulations that have to repeat.
    /// Defaults to a random one for each store.
    #[doc(hidden)]
    pub const fn hasher(mut self, hasher: KeyHasher) -> Self {
        self.hasher = Some(hasher);
        self
    }
}

impl Default for LeaseOptions {
    fn default() -> Self {
        Self {
            longest: Self::DEFAULT_LONGEST,
            keys: Self::DEFAULT_KEYS,
            hasher: None,
        }
    }
}
