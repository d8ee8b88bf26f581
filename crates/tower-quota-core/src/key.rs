//! Keys identify clients.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::net::IpAddr;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::name::Name;

/// The maximum number of bytes without an allocation. An IPv6 address, a UUID in text and most API
/// keys fit.
const INLINE: usize = 38;

/// The NAT64 prefix of IPv6 addresses for IPv4 hosts (RFC 6052).
const NAT64: [u8; 12] = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];

/// The identity of a client, as bytes and a scope.
///
/// The scope is the kind of key, so the address `10.0.0.1` and a user named `10.0.0.1` share no counters. A key may
/// borrow from your request. `Debug` hides the bytes, which may be secret.
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
#[must_use]
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
    /// The key of a global limit, with a single counter for all requests.
    pub const EVERYONE: Key<'static> = Key::new(Name::new("everyone"), b"");

    pub(crate) fn is_everyone(&self) -> bool {
        self.scope.id() == Self::EVERYONE.scope.id() && self.as_bytes().is_empty()
    }

    /// Creates a key that borrows the bytes.
    #[inline]
    pub const fn new(scope: Name, bytes: &'a [u8]) -> Self {
        Self {
            scope,
            bytes: Bytes::Borrowed(bytes),
            is_address: false,
        }
    }

    /// Creates a key that owns the bytes. Up to 38 bytes need no allocation.
    #[inline]
    pub fn owned(scope: Name, bytes: impl AsRef<[u8]> + Into<Vec<u8>>) -> Key<'static> {
        let slice = bytes.as_ref();
        let bytes = match u8::try_from(slice.len()) {
            Ok(length) if slice.len() <= INLINE => {
                let mut bytes = [0; INLINE];
                bytes[..slice.len()].copy_from_slice(slice);
                Bytes::Inline { length, bytes }
            }
            _ => Bytes::Owned(bytes.into()),
        };
        Key {
            scope,
            bytes,
            is_address: false,
        }
    }

    /// Creates a key from a number, such as the id of a user.
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

    /// Creates a key from an IP address.
    ///
    /// The first 64 bits of an IPv6 address count, the smallest network of a customer (RFC 6177). Mapped addresses in
    /// `::ffff:0:0/96` (RFC 4291, section 2.5.5.2) and NAT64 addresses in `64:ff9b::/96` (RFC 6052, section 2.1) count
    /// as IPv4 addresses.
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

    /// Creates a key from the first bytes of an address, 4 bytes for IPv4 or 8 to 16 bytes for IPv6.
    #[inline]
    pub fn network(scope: Name, bytes: &[u8]) -> Key<'static> {
        Key {
            is_address: true,
            ..Key::owned(scope, bytes)
        }
    }

    /// Returns a copy that owns the bytes.
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

    /// Returns the address of the key. For IPv6, returns the first address of the network.
    ///
    /// Returns `None` unless the key is from [`address`](Self::address) or [`network`](Self::network).
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

    /// Joins keys in order. Parts with other scopes or borders make another key.
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

    /// Returns the scope, such as `client ip`, the name of a header or your own name.
    pub const fn scope(&self) -> Name {
        self.scope
    }

    /// Returns the bytes. Do not log the bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Borrowed(bytes) => bytes,
            Bytes::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Bytes::Owned(bytes) => bytes,
        }
    }

    /// Returns a 128-bit hash of the key under a secret seed (SipHash-1-3).
    ///
    /// Without the seed, nobody can read the key or find keys that collide. A billion keys collide with a probability of
    /// 1 in 10^21.
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
