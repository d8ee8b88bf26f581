use core::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net};
use tower_quota_core::{Key, Name};

const BEFORE_IPV4: u8 = 96;

#[inline]
pub(super) fn canonical(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => canonical_v6(v6),
    }
}

fn canonical_v6(address: Ipv6Addr) -> IpAddr {
    let key = Key::address(const { Name::new("ip") }, address.into());
    <[u8; 4]>::try_from(key.as_bytes()).map_or(address.into(), IpAddr::from)
}

pub(crate) fn network(text: &str) -> Option<IpNet> {
    // Documents contain up to a million keys, and the first byte rules out most keys as addresses.
    if !text
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.' | b'/'))
    {
        return None;
    }
    let network = text
        .parse()
        .ok()
        .or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))?;
    let v4 = || {
        let IpAddr::V4(v4) = canonical(network.network()) else {
            return None;
        };
        Ipv4Net::new(v4, network.prefix_len().checked_sub(BEFORE_IPV4)?).ok()
    };
    Some(match network {
        IpNet::V4(_) => network,
        IpNet::V6(_) => v4().map_or(network, IpNet::V4),
    })
}

pub(super) fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            // 100.64.0.0/10 belongs to a provider's customers (RFC 6598), or to pods.
            v4.is_loopback()
                || v4.is_private()
                || v4.is_link_local()
                || (a == 100 && b & 0xc0 == 64)
        }
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) v4: u8,
    pub(super) v6: u8,
}

impl Prefix {
    pub(super) const DEFAULT: Self = Self { v4: 32, v6: 64 };

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

    #[inline]
    pub(super) fn key(self, scope: Name, address: IpAddr) -> Key<'static> {
        match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX << (32 - u32::from(self.v4));
                Key::network(scope, &(v4.to_bits() & mask).to_be_bytes())
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX << (128 - u32::from(self.v6));
                let network = (v6.to_bits() & mask).to_be_bytes();
                // Four bytes would be an IPv4 address.
                Key::network(scope, &network[..usize::from(self.v6.div_ceil(8)).max(8)])
            }
        }
    }

    /// Parses a network with the counted prefix length, or an address.
    pub(super) fn parse(self, scope: Name, text: &str) -> Option<Key<'static>> {
        let network = network(text)?;
        let bits = if matches!(network, IpNet::V4(_)) {
            self.v4
        } else {
            self.v6
        };
        let fits = network.prefix_len() == network.max_prefix_len() || network.prefix_len() == bits;
        fits.then(|| self.key(scope, network.network()))
    }
}
