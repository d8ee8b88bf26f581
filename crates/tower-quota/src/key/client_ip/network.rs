//! Addresses and networks, in the one form that they are compared and counted in.

use core::fmt::{self, Write};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net};
use tower_quota_core::{ConfigError, Key, Name};

/// The bits before an IPv4 address that is written as IPv6.
const BEFORE_IPV4: u8 = 96;

/// Returns an address in its own family.
///
/// IPv6 addresses that stand for IPv4 addresses become those: mapped ones, `::ffff:0:0/96` (RFC 4291, section 2.5.5.2),
/// and those of NAT64, `64:ff9b::/96` (RFC 6052, section 2.1).
pub(crate) fn canonical(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => ipv4_behind_nat64(v6).map_or(address, IpAddr::V4),
        v4 => v4,
    }
}

fn ipv4_behind_nat64(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d] = *address.octets().strip_prefix(&[0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0])? else {
        return None;
    };
    Some(Ipv4Addr::new(a, b, c, d))
}

/// Returns the network that a text means, [in its own family](canonical). An address alone is a network of one.
pub(crate) fn network(text: &str) -> Option<IpNet> {
    let network = text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))?;
    let v4 = || {
        let IpAddr::V4(v4) = canonical(network.network()) else { return None };
        Ipv4Net::new(v4, network.prefix_len().checked_sub(BEFORE_IPV4)?).ok()
    };
    Some(match network {
        IpNet::V4(_) => network,
        IpNet::V6(_) => v4().map_or(network, IpNet::V4),
    })
}

/// Returns whether an address is one that no client on the internet has: of this machine or a private network.
pub(super) fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            // 100.64.0.0/10 is shared by a provider's customers (RFC 6598), and by the pods of some clusters.
            v4.is_loopback() || v4.is_private() || v4.is_link_local() || (a == 100 && b & 0xc0 == 64)
        }
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

/// The number of leading bits that tell clients apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    v4: u8,
    v6: u8,
}

impl Prefix {
    pub(super) const DEFAULT: Self = Self { v4: 32, v6: 64 };

    pub(super) const fn with_v4(self, bits: u8) -> Result<Self, ConfigError> {
        if matches!(bits, 1..=32) {
            Ok(Self { v4: bits, ..self })
        } else {
            Err(ConfigError::AddressPrefix { bits, most: 32 })
        }
    }

    pub(super) const fn with_v6(self, bits: u8) -> Result<Self, ConfigError> {
        if matches!(bits, 1..=128) {
            Ok(Self { v6: bits, ..self })
        } else {
            Err(ConfigError::AddressPrefix { bits, most: 128 })
        }
    }

    /// Returns the scope of keys that are read from a source, with the prefixes that differ from the default.
    pub(super) fn scope(self, source: Option<&str>) -> Name {
        let mut scope = String::from("ip");
        if let Some(source) = source {
            scope.push_str(" of ");
            scope.push_str(source);
        }
        if self.v6 != Self::DEFAULT.v6 {
            scope.push_str(&format!(" /{}", self.v6));
        }
        if self.v4 != Self::DEFAULT.v4 {
            scope.push_str(&format!(" v4/{}", self.v4));
        }
        Name::from(scope)
    }

    /// Returns the key of an address: the text of its network, such as `203.0.113.7/32` or `2001:db8:0:1::/64`.
    pub(super) fn key(self, scope: Name, address: IpAddr) -> Key<'static> {
        let mut text = Text { bytes: [0; LONGEST], length: 0 };
        match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX << (32 - u32::from(self.v4));
                text.write_v4(Ipv4Addr::from_bits(v4.to_bits() & mask), self.v4);
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX << (128 - u32::from(self.v6));
                text.write_v6(Ipv6Addr::from_bits(v6.to_bits() & mask), self.v6);
            }
        }
        Key::owned(scope, &text.bytes[..text.length])
    }

    /// Returns the key of the network that a text means, if it is one of those that are counted.
    pub(super) fn parse(self, scope: Name, text: &str) -> Option<Key<'static>> {
        let network = network(text)?;
        let bits = if matches!(network, IpNet::V4(_)) { self.v4 } else { self.v6 };
        let fits = network.prefix_len() == network.max_prefix_len() || network.prefix_len() == bits;
        fits.then(|| self.key(scope, network.network()))
    }
}

/// The bytes of the longest network: eight groups of four digits, seven colons, and `/128`.
const LONGEST: usize = 43;

/// A text of a network, without an allocation.
struct Text {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Text {
    /// Writes an IPv4 network without the machinery of formatting, which takes several times as long.
    fn write_v4(&mut self, network: Ipv4Addr, bits: u8) {
        for (octet, after) in network.octets().into_iter().zip(*b".../") {
            self.push_number(octet);
            self.push(after);
        }
        self.push_number(bits);
    }

    /// Writes an IPv6 network as RFC 5952 recommends, up to 64 bits without the machinery of formatting.
    fn write_v6(&mut self, network: Ipv6Addr, bits: u8) {
        if bits > 64 {
            // Cannot fail: the longest network fits.
            let _ = write!(self, "{network}/{bits}");
            return;
        }
        // The zeros at the end are the longest run of zeros, which is left out.
        let groups = network.segments();
        let used = groups.iter().rposition(|group| *group != 0).map_or(0, |last| last + 1);
        for group in &groups[..used] {
            self.push_hex(*group);
            self.push(b':');
        }
        if used == 0 {
            self.push(b':');
        }
        self.push(b':');
        self.push(b'/');
        self.push_number(bits);
    }

    fn push_hex(&mut self, group: u16) {
        let digits = group.max(1).ilog2() / 4;
        for digit in (0..=digits).rev() {
            self.push(b"0123456789abcdef"[usize::from(group >> (4 * digit) & 15)]);
        }
    }

    fn push_number(&mut self, number: u8) {
        if number >= 100 {
            self.push(b'0' + number / 100);
        }
        if number >= 10 {
            self.push(b'0' + number / 10 % 10);
        }
        self.push(b'0' + number % 10);
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}
