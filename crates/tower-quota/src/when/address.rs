//! Conditions on the client's address.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::condition::{Condition, PatternError};
use crate::head::RequestHead;
use crate::key::{ClientIp, canonical, network};
use crate::valid::valid;

/// Matches requests from clients whose address is in one of these networks.
///
/// A network is written as `203.0.113.0/24`, or as a single address. The address is read by the extractor; a request
/// without one does not match. Lists of many thousands are as fast as short ones.
///
/// Bits after the prefix are ignored. IPv4 addresses that are written as IPv6, `::ffff:203.0.113.7` or
/// `64:ff9b::203.0.113.7`, are IPv4 addresses; no IPv6 network contains them, not even `::/0`.
///
/// ```
/// use tower_quota::{Policy, key, when};
///
/// // Our own monitoring is never refused.
/// let policy = Policy::new().allow(when::address_in(key::client_ip(), ["10.20.0.0/16", "192.0.2.44"]));
/// # let _ = policy;
/// ```
///
/// # Panics
/// When one of them is not a network; see [`try_address_in`].
#[must_use]
#[track_caller]
#[doc(alias = "cidr")]
#[doc(alias = "ip allow list")]
#[doc(alias = "ip block list")]
pub fn address_in<T: AsRef<str>>(
    client: ClientIp,
    networks: impl IntoIterator<Item = T>,
) -> Box<dyn Condition> {
    valid(try_address_in(client, networks))
}

/// Works like [`address_in`], but returns an error for an invalid network.
///
/// # Errors
/// [`PatternError::Network`] with the first text that is neither an address nor a network.
pub fn try_address_in<T: AsRef<str>>(
    client: ClientIp,
    networks: impl IntoIterator<Item = T>,
) -> Result<Box<dyn Condition>, PatternError> {
    let networks = Networks::parse(networks)?;
    Ok(Box::new(move |head: &RequestHead<'_>| {
        client
            .address(head)
            .is_some_and(|address| networks.contain(address))
    }))
}

/// Returns the first and the last address of a network or an address, for indexes of networks.
///
/// They are in the family in which the addresses of clients are compared, see [`address_in`].
///
/// # Errors
/// [`PatternError::Network`] when the text is neither an address nor a network.
pub fn try_network_range(text: &str) -> Result<(IpAddr, IpAddr), PatternError> {
    match network(text) {
        Some(network) => Ok((network.network(), network.broadcast())),
        None => Err(PatternError::Network(text.to_owned())),
    }
}

/// A set of networks, sorted for fast look-ups.
struct Networks {
    v4: Ranges<Ipv4Addr>,
    v6: Ranges<Ipv6Addr>,
}

impl Networks {
    fn parse<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Self, PatternError> {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for text in texts {
            match network(text.as_ref()) {
                Some(IpNet::V4(net)) => v4.push((net.network(), net.broadcast())),
                Some(IpNet::V6(net)) => v6.push((net.network(), net.broadcast())),
                None => return Err(PatternError::Network(text.as_ref().to_owned())),
            }
        }
        Ok(Self {
            v4: Ranges::new(v4),
            v6: Ranges::new(v6),
        })
    }

    fn contain(&self, address: IpAddr) -> bool {
        match canonical(address) {
            IpAddr::V4(address) => self.v4.contain(address),
            IpAddr::V6(address) => self.v6.contain(address),
        }
    }
}

/// The first and last addresses of networks, sorted and disjoint.
struct Ranges<A>(Vec<(A, A)>);

impl<A: Copy + Ord> Ranges<A> {
    fn new(mut ranges: Vec<(A, A)>) -> Self {
        // Networks with the same first address are sorted by size, the largest first. If two networks overlap, one
        // contains the other. So a network that is not disjoint from its predecessor is inside it.
        ranges.sort_unstable_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(&one.1)));
        ranges.dedup_by(|next, kept| next.1 <= kept.1);
        Self(ranges)
    }

    fn contain(&self, address: A) -> bool {
        let begun = self.0.partition_point(|(first, _)| *first <= address);
        self.0[..begun]
            .last()
            .is_some_and(|(_, last)| address <= *last)
    }
}
