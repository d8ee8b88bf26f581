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

impl<const N: usize> AsKey for [u8; N] {
    fn as_key(&self, scope: Name) -> Key<'_> {
        Key::new(scope, self)
    }
}

macro_rules! as_key {
    (|$value:ident, $scope:ident| $key:expr; $($type:ty),*) => {
        $(impl AsKey for $type {
            #[inline]
            fn as_key(&self, $scope: Name) -> Key<'_> {
                let $value = self;
                $key
            }
        })*
    };
}

as_key!(|bytes, scope| Key::new(scope, bytes); [u8], Vec<u8>);
as_key!(|text, scope| Key::new(scope, text.as_bytes()); str, String, Box<str>, Rc<str>, Arc<str>, Cow<'_, str>);
// Equal numbers of different types are the same key. Negative numbers use the two's complement.
as_key!(|number, scope| Key::number(scope, *number); u64);
as_key!(|number, scope| Key::number(scope, *number as u64); u8, u16, u32, usize);
as_key!(|number, scope| Key::number(scope, number.cast_unsigned()); i64);
as_key!(|number, scope| Key::number(scope, i64::from(*number).cast_unsigned()); i8, i16, i32);
// An IPv6 address counts by the first 64 bits. See `Key::address`.
as_key!(|address, scope| Key::address(scope, (*address).into()); Ipv4Addr, Ipv6Addr);
as_key!(|address, scope| Key::address(scope, *address); IpAddr);
