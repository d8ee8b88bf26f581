//! Keys: the identity of a client.

use core::fmt;
use core::net::IpAddr;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::name::Name;

/// Bytes that fit without an allocation: an IPv6 address, a UUID in text, most API keys.
const INLINE: usize = 38;

/// The prefix of IPv6 addresses that stand for IPv4 addresses behind NAT64 (RFC 6052).
const NAT64: [u8; 12] = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];

/// The identity that is counted: bytes, and a scope that names their kind.
///
/// Two keys share counters only if bytes and scope are equal: the address `10.0.0.1` and a user named `10.0.0.1` never
/// do. A key may borrow its bytes from the request, since a store takes what it needs before it answers. `Debug` shows
/// the scope and the length, and never the bytes, which may be a secret or an address.
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
    /// The key of a global limit: one counter for all requests.
    pub const EVERYONE: Key<'static> = Key::new(Name::new("everyone"), b"");

    /// Returns whether this is [`EVERYONE`](Self::EVERYONE).
    pub(crate) fn is_everyone(&self) -> bool {
        self.scope.id() == Self::EVERYONE.scope.id() && self.as_bytes().is_empty()
    }

    /// Makes a key that borrows its bytes.
    #[must_use]
    #[inline]
    pub const fn new(scope: Name, bytes: &'a [u8]) -> Self {
        Self {
            scope,
            bytes: Bytes::Borrowed(bytes),
            is_address: false,
        }
    }

    /// Makes a key that owns its bytes; up to 38 of them without an allocation.
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

    /// Makes a key from a number, such as a user's id.
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

    /// Makes a key from an address.
    ///
    /// An IPv4 address that is written as IPv6 is the IPv4 address: mapped, `::ffff:0:0/96` (RFC 4291, section 2.5.5.2),
    /// or behind NAT64, `64:ff9b::/96` (RFC 6052, section 2.1). IPv6 is counted by its first 64 bits: a network of that
    /// size is the least that a provider gives to one customer (RFC 6177).
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

    /// Makes a key from the first bytes of an address: four of IPv4, or 8 to 16 of IPv6.
    #[must_use]
    pub fn network(scope: Name, bytes: &[u8]) -> Key<'static> {
        Key {
            is_address: true,
            ..Key::owned(scope, bytes)
        }
    }

    /// Returns the same key with bytes of its own.
    #[must_use]
    pub fn to_static(&self) -> Key<'static> {
        Key {
            is_address: self.is_address,
            ..Key::owned(self.scope, self.as_bytes())
        }
    }

    /// Returns the same key, which borrows its bytes.
    pub(crate) fn borrowed(&self) -> Key<'_> {
        Key {
            is_address: self.is_address,
            ..Key::new(self.scope, self.as_bytes())
        }
    }

    /// Returns the address that the key was [made from](Self::address); for IPv6, the first address of its network.
    ///
    /// Returns `None` if the key was made in another way, even if its bytes look like an address.
    #[must_use]
    pub fn to_address(&self) -> Option<IpAddr> {
        if !self.is_address {
            return None;
        }
        match self.as_bytes() {
            [a, b, c, d] => Some([*a, *b, *c, *d].into()),
            network => {
                let mut octets = [0; 16];
                octets
                    .get_mut(..network.len())
                    .filter(|octets| octets.len() >= 8)?
                    .copy_from_slice(network);
                Some(octets.into())
            }
        }
    }

    /// Joins several keys to one, in order. Scopes and borders of the parts make a difference.
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

    /// Returns the scope: the name of the header, `client ip`, a name of your own.
    #[must_use]
    pub const fn scope(&self) -> Name {
        self.scope
    }

    /// Returns the bytes. They are not for logs.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Borrowed(bytes) => bytes,
            Bytes::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Bytes::Owned(bytes) => bytes,
        }
    }

    /// Returns a keyed hash of this key for a store (SipHash-1-3, 128 bits).
    ///
    /// Without the seed, the key cannot be read from the hash, and no two keys that collide can be found. Among a billion
    /// keys, the probability of any collision is about 1 in 10^21.
    #[must_use]
    pub fn digest(&self, seed: &[u8; 16]) -> u128 {
        let mut hasher = SipHasher13::new_with_key(seed);
        core::hash::Hasher::write(&mut hasher, &self.scope.id().to_le_bytes());
        core::hash::Hasher::write(&mut hasher, self.as_bytes());
        hasher.finish128().as_u128()
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.scope == other.scope && self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Key<'_> {}

impl core::hash::Hash for Key<'_> {
    #[inline]
    fn hash<H: core::hash::Hasher>(&self, hasher: &mut H) {
        // Numbers and networks are the commonest keys, and hashers are faster at numbers than at bytes. The scope takes the
        // same number of bytes in each key, so no two keys write the same.
        match self.as_bytes() {
            &[a, b, c, d, e, f, g, h] => {
                hasher.write_u64(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
            }
            bytes => hasher.write(bytes),
        }
        hasher.write_u32(self.scope.id());
    }
}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}, {} bytes)", self.scope, self.as_bytes().len())
    }
}
