//! Keys identify clients.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::net::IpAddr;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::name::Name;

/// Bytes without an allocation, enough for an IPv6 address, a UUID in text or most API keys.
const INLINE: usize = 38;

/// The prefix of IPv6 addresses behind NAT64 (RFC 6052).
const NAT64: [u8; 12] = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];

/// The identity that a limit counts, with bytes and a scope.
///
/// Keys share counters only if the bytes and the scopes are equal. The address `10.0.0.1` and a user named `10.0.0.1` have
/// different scopes. A key may borrow the bytes from your request. `Debug` shows the scope and the length, and never the bytes.
///
/// ```
/// use tower_quota_core::{Key, Name};
///
/// const USER: Name = Name::new("user");
/// assert_ne!(Key::new(USER, b"ann"), Key::new(Name::new("team"), b"ann"));
/// // Parts keep their borders: ("ab", "c") is not ("a", "bc").
/// let (ab, c) = (Key::new(USER, b"ab"), Key::new(USER, b"c"));
/// let (a, bc) = (Key::new(USER, b"a"), Key::new(USER, b"bc"));
/// assert_ne!(Key::joined(USER, [&ab, &c]), Key::joined(USER, [&a, &bc]));
/// ```
#[derive(Clone)]
pub struct Key<'a> {
    scope: Name,
    bytes: Bytes<'a>,
    is_address: bool,
}

#[derive(Clone)]
enum Bytes<'a> {
    Borrowed(&'a [u8]),
    Inline { length: u8, bytes: [u8; INLINE] },
    Owned(Vec<u8>),
}

impl<'a> Key<'a> {
    /// The key of a global limit, with one counter for all requests.
    pub const EVERYONE: Key<'static> = Key::new(Name::new("everyone"), b"");

    pub(crate) fn is_everyone(&self) -> bool {
        self.scope.id() == Self::EVERYONE.scope.id() && self.as_bytes().is_empty()
    }

    /// Creates a key that borrows the bytes.
    #[must_use]
    #[inline]
    pub const fn new(scope: Name, bytes: &'a [u8]) -> Self {
        Self {
            scope,
            bytes: Bytes::Borrowed(bytes),
            is_address: false,
        }
    }

    /// Creates a key that owns the bytes. Up to 38 bytes need no allocation.
    #[must_use]
    pub fn owned(scope: Name, bytes: impl AsRef<[u8]> + Into<Vec<u8>>) -> Key<'static> {
        let slice = bytes.as_ref();
        let kept = match u8::try_from(slice.len()) {
            Ok(length) if slice.len() <= INLINE => {
                let mut inline = [0; INLINE];
                inline[..slice.len()].copy_from_slice(slice);
                Bytes::Inline {
                    length,
                    bytes: inline,
                }
            }
            _ => Bytes::Owned(bytes.into()),
        };
        Key {
            scope,
            bytes: kept,
            is_address: false,
        }
    }

    /// Creates a key from a number, for example the id of a user.
    #[must_use]
    #[inline]
    pub const fn number(scope: Name, number: u64) -> Key<'static> {
        let mut bytes = [0; INLINE];
        let (first, _) = bytes.split_at_mut(8);
        first.copy_from_slice(&number.to_be_bytes());
        Key {
            scope,
            bytes: Bytes::Inline { length: 8, bytes },
            is_address: false,
        }
    }

    /// Creates a key from an address.
    ///
    /// An IPv4 address in an IPv6 address is the same key as the IPv4 address, whether mapped in `::ffff:0:0/96` (RFC 4291, section
    /// 2.5.5.2) or behind NAT64 in `64:ff9b::/96` (RFC 6052, section 2.1). An IPv6 address counts by the first 64 bits, the smallest
    /// network that a provider gives to a customer (RFC 6177).
    #[must_use]
    pub fn address(scope: Name, address: IpAddr) -> Key<'static> {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self::network(scope, &v4.octets()),
            IpAddr::V6(v6) => {
                let octets = v6.octets();
                let v4 = octets.strip_prefix(&NAT64);
                Self::network(scope, v4.unwrap_or(&octets[..8]))
            }
        }
    }

    /// Creates a key from the first bytes of an address. Use four bytes of IPv4, or 8 to 16 bytes of IPv6.
    #[must_use]
    pub fn network(scope: Name, bytes: &[u8]) -> Key<'static> {
        Key {
            is_address: true,
            ..Key::owned(scope, bytes)
        }
    }

    /// Returns the same key with its own bytes.
    #[must_use]
    pub fn to_static(&self) -> Key<'static> {
        Key {
            is_address: self.is_address,
            ..Key::owned(self.scope, self.as_bytes())
        }
    }

    pub(crate) fn borrowed(&self) -> Key<'_> {
        Key {
            is_address: self.is_address,
            ..Key::new(self.scope, self.as_bytes())
        }
    }

    /// Returns the [address](Self::address) of the key. For IPv6, returns the first address of the network.
    ///
    /// Returns `None` for other keys, even if the bytes look like an address.
    #[must_use]
    pub fn to_address(&self) -> Option<IpAddr> {
        match self.as_bytes() {
            _ if !self.is_address => None,
            &[a, b, c, d] => Some([a, b, c, d].into()),
            network => {
                let mut octets = [0; 16];
                octets.get_mut(..network.len())?.copy_from_slice(network);
                (network.len() >= 8).then(|| octets.into())
            }
        }
    }

    /// Joins keys to one key, in order. Keys with different scopes or borders join to different keys.
    #[must_use]
    pub fn joined<'k, 'b: 'k>(
        scope: Name,
        parts: impl IntoIterator<Item = &'k Key<'b>>,
    ) -> Key<'static> {
        let mut bytes = Vec::with_capacity(INLINE);
        for part in parts {
            let part_bytes = part.as_bytes();
            bytes.extend_from_slice(&part.scope.id().to_be_bytes());
            bytes.extend_from_slice(&(part_bytes.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part_bytes);
        }
        Key::owned(scope, bytes)
    }

    /// Returns the scope, for example the name of a header or your own name.
    #[must_use]
    pub const fn scope(&self) -> Name {
        self.scope
    }

    /// Returns the bytes. Do not log the bytes, which may be a secret or an address.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Borrowed(bytes) => bytes,
            Bytes::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Bytes::Owned(bytes) => bytes,
        }
    }

    /// Returns a keyed hash of the key for a store (SipHash-1-3, 128 bits).
    ///
    /// Without the seed, you cannot read the key from the hash, and cannot find keys with equal hashes. Among a billion keys, two
    /// hashes are equal with a probability of about 1 in 10^21.
    #[must_use]
    pub fn digest(&self, seed: &[u8; 16]) -> u128 {
        let mut hasher = SipHasher13::new_with_key(seed);
        hasher.write(&self.scope.id().to_le_bytes());
        hasher.write(self.as_bytes());
        hasher.finish128().as_u128()
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.scope == other.scope && self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Key<'_> {}

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.scope.id(), self.as_bytes()).hash(hasher);
    }
}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}, {} bytes)", self.scope, self.as_bytes().len())
    }
}
