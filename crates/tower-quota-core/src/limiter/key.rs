//! Values that a limiter can count by.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use crate::key::Key;
use crate::name::Name;

/// A value that a [`Limiter`](crate::Limiter) can count by.
///
/// You can count by text, bytes, integers, addresses and [`Key`]. Equal integers of different types are the same key.
/// Implement the trait for your own identifiers:
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
#[diagnostic::on_unimplemented(
    message = "a limiter cannot count by `{Self}`",
    note = "implement `AsKey` for it, or count by text, bytes, an integer, an address or a `Key`"
)]
pub trait AsKey {
    /// Returns the key of this value. Values with equal keys share counters.
    fn as_key(&self, scope: Name) -> Key<'_>;
}

impl<K: AsKey + ?Sized> AsKey for &K {
    fn as_key(&self, scope: Name) -> Key<'_> {
        (**self).as_key(scope)
    }
}

/// A key keeps its scope, so that your limiter can share counters with a layer.
impl AsKey for Key<'_> {
    fn as_key(&self, _: Name) -> Key<'_> {
        self.borrowed()
    }
}

impl AsKey for [u8] {
    fn as_key(&self, scope: Name) -> Key<'_> {
        Key::new(scope, self)
    }
}

impl<const N: usize> AsKey for [u8; N] {
    fn as_key(&self, scope: Name) -> Key<'_> {
        Key::new(scope, self)
    }
}

impl AsKey for str {
    fn as_key(&self, scope: Name) -> Key<'_> {
        Key::new(scope, self.as_bytes())
    }
}

macro_rules! owners_as_keys {
    ($($owner:ty),*) => {
        $(impl AsKey for $owner {
            fn as_key(&self, scope: Name) -> Key<'_> {
                (**self).as_key(scope)
            }
        })*
    };
}

owners_as_keys!(String, Box<str>, Rc<str>, Arc<str>, Cow<'_, str>, Vec<u8>);

macro_rules! numbers_as_keys {
    ($($number:ty: $wide:expr;)*) => {
        $(impl AsKey for $number {
            #[inline]
            fn as_key(&self, scope: Name) -> Key<'_> {
                Key::number(scope, $wide(*self))
            }
        })*
    };
}

// Equal numbers of different types are the same key. Negative numbers use the two's complement.
numbers_as_keys! {
    u8: u64::from;
    u16: u64::from;
    u32: u64::from;
    u64: u64::from;
    usize: |number| number as u64;
    i8: |number| i64::from(number).cast_unsigned();
    i16: |number| i64::from(number).cast_unsigned();
    i32: |number| i64::from(number).cast_unsigned();
    i64: i64::cast_unsigned;
}

/// An IPv6 address counts by the first 64 bits. See [`Key::address`].
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
