//! The keys that a limiter counts by.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::key::Key;
use crate::name::Name;

/// A value that a [`Limiter`](crate::Limiter) can count by.
///
/// It is implemented for text, bytes, numbers, addresses and [`Key`]. Implement it for identifiers of your own:
///
/// ```
/// use tower_quota_core::{AsKey, Key, Limiter, MemoryStore, Name, Quota};
///
/// struct UserId(u64);
///
/// impl AsKey for UserId {
///     fn as_key(&self, scope: Name) -> Key<'_> {
///         Key::number(scope, self.0)
///     }
/// }
///
/// let limiter = Limiter::new(MemoryStore::new(), "downloads", Quota::per_minute(5));
/// assert!(limiter.check_now(&UserId(7)).is_allowed());
/// ```
pub trait AsKey {
    /// Returns the key of this value. Two values share counters if their keys are equal.
    fn as_key(&self, scope: Name) -> Key<'_>;
}

impl<K: AsKey + ?Sized> AsKey for &K {
    #[inline]
    fn as_key(&self, scope: Name) -> Key<'_> {
        (**self).as_key(scope)
    }
}

/// A key is counted as it is, in its own scope, so that a limiter can share counters with a layer.
impl AsKey for Key<'_> {
    #[inline]
    fn as_key(&self, _: Name) -> Key<'_> {
        Key::new(self.scope(), self.as_bytes())
    }
}

impl AsKey for [u8] {
    #[inline]
    fn as_key(&self, scope: Name) -> Key<'_> {
        Key::new(scope, self)
    }
}

impl<const N: usize> AsKey for [u8; N] {
    #[inline]
    fn as_key(&self, scope: Name) -> Key<'_> {
        Key::new(scope, self)
    }
}

impl AsKey for str {
    #[inline]
    fn as_key(&self, scope: Name) -> Key<'_> {
        Key::new(scope, self.as_bytes())
    }
}

impl AsKey for String {
    #[inline]
    fn as_key(&self, scope: Name) -> Key<'_> {
        self.as_str().as_key(scope)
    }
}

impl AsKey for u64 {
    #[inline]
    fn as_key(&self, scope: Name) -> Key<'_> {
        Key::number(scope, *self)
    }
}

/// Addresses of IPv6 are counted by their first 64 bits, see [`Key::address`].
impl AsKey for IpAddr {
    fn as_key(&self, scope: Name) -> Key<'_> {
        Key::address(scope, *self)
    }
}

impl AsKey for Ipv4Addr {
    fn as_key(&self, scope: Name) -> Key<'_> {
        Key::address(scope, (*self).into())
    }
}

impl AsKey for Ipv6Addr {
    fn as_key(&self, scope: Name) -> Key<'_> {
        Key::address(scope, (*self).into())
    }
}
