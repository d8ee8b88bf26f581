//! Which proxies are believed, and the walk back along them.

use core::net::IpAddr;

use http::HeaderMap;
use ipnet::{IpNet, Ipv4Net};
use tower_quota_core::ConfigError;

use super::source::Source;
use super::written_in_code;

/// The proxies in front of a service, as [`ClientIp::behind`](super::ClientIp::behind) believes them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proxies(Trust);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Trust {
    Networks(Vec<IpNet>),
    Hops(u8),
}

impl Proxies {
    /// More hops than this nobody has, and no more entries of a list are read.
    pub(super) const MOST_HOPS: u8 = 32;

    /// Proxies that are known by their addresses: networks in CIDR notation such as `"10.0.0.0/8"` or `"fd00::/8"`, or
    /// single addresses. Among several networks none should hold a client. None at all trusts nobody.
    ///
    /// # Panics
    /// When one of them is neither a network nor an address; see [`Proxies::try_networks`].
    #[must_use]
    #[track_caller]
    pub fn networks(networks: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        written_in_code(Self::try_networks(networks))
    }

    /// [`Proxies::networks`] for networks that were not written in code.
    ///
    /// # Errors
    /// [`ConfigError::Network`] when one of them is neither a network nor an address.
    pub fn try_networks(networks: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, ConfigError> {
        networks
            .into_iter()
            .map(|text| network(text.as_ref()))
            .collect::<Result<_, _>>()
            .map(|all| Self(Trust::Networks(all)))
    }

    /// As many proxies as this, 1 to 32, whatever their addresses: with 1 whoever connects is a proxy, and the client
    /// is the right-most entry of a list; with 2 the next one. Google's balancers, say, append two entries. The peer's
    /// address need not be known.
    ///
    /// Right only where nobody can connect past the proxies: to a service that is reached directly, or past some of
    /// them, clients can tell any address.
    ///
    /// # Panics
    /// When `count` is 0 or more than 32; see [`Proxies::try_hops`].
    #[must_use]
    #[track_caller]
    pub fn hops(count: u8) -> Self {
        written_in_code(Self::try_hops(count))
    }

    /// [`Proxies::hops`] for a number that was not written in code.
    ///
    /// # Errors
    /// [`ConfigError::ProxyHops`] when `count` is 0 or more than 32.
    pub const fn try_hops(count: u8) -> Result<Self, ConfigError> {
        if matches!(count, 1..=Self::MOST_HOPS) {
            Ok(Self(Trust::Hops(count)))
        } else {
            Err(ConfigError::ProxyHops(count))
        }
    }

    /// Whether what stands `distance` places before the service, the peer at 0, is one of the proxies.
    fn hold(&self, address: Option<IpAddr>, distance: usize) -> bool {
        match &self.0 {
            Trust::Networks(networks) => {
                address.is_some_and(|address| networks.iter().any(|network| network.contains(&address)))
            }
            Trust::Hops(count) => distance < usize::from(*count),
        }
    }
}

/// A network, or an address as one of its own. IPv4 networks that are written as mapped into IPv6 are IPv4 networks,
/// since addresses are compared so.
fn network(text: &str) -> Result<IpNet, ConfigError> {
    let text = text.trim();
    let parsed = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
    let network = parsed.ok_or_else(|| ConfigError::Network(text.to_owned()))?;
    let IpNet::V6(v6) = network else { return Ok(network) };
    let unmapped = v6.addr().to_ipv4_mapped().zip(v6.prefix_len().checked_sub(MAPPED_BITS));
    Ok(unmapped.and_then(|(v4, bits)| Ipv4Net::new(v4, bits).ok()).map_or(network, IpNet::V4))
}

/// The bits before an IPv4 address that is mapped into IPv6 (RFC 4291, section 2.5.5.2).
const MAPPED_BITS: u8 = 96;

/// Proxies, and where they tell whom they speak for.
#[derive(Clone, Debug)]
pub(super) struct Behind {
    pub(super) proxies: Proxies,
    pub(super) source: Source,
}

impl Behind {
    /// The client of a request from this peer.
    pub(super) fn client(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<IpAddr> {
        if !self.proxies.hold(peer, 0) {
            return peer;
        }
        match self.source.told(headers) {
            Some(list) => self.walk(peer, list),
            None => self.source.single(headers).or(peer),
        }
    }

    /// The first that is no proxy, from the nearest to the farthest; each is believed because the one before is a
    /// proxy.
    fn walk(&self, peer: Option<IpAddr>, entries: impl Iterator<Item = Option<IpAddr>>) -> Option<IpAddr> {
        let mut farthest = peer;
        for (entry, distance) in entries.take(usize::from(Proxies::MOST_HOPS)).zip(1..) {
            if entry.is_none() {
                return farthest;
            }
            farthest = entry;
            if !self.proxies.hold(entry, distance) {
                return farthest;
            }
        }
        match self.proxies.0 {
            Trust::Networks(_) => farthest,
            Trust::Hops(_) => peer,
        }
    }
}
