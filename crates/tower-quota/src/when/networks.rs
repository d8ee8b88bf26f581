//! Lists of networks, quick to look up however long they are.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::PatternError;

/// The prefix of the IPv6 addresses that stand for IPv4 addresses, `::ffff:0:0/96` (RFC 4291, section 2.5.5.2).
const MAPPED_PREFIX: u8 = 96;

/// A set of networks.
pub(super) struct Networks {
    v4: Ranges<Ipv4Addr>,
    v6: Ranges<Ipv6Addr>,
}

impl Networks {
    /// The networks that these texts mean. An address alone is a network of one.
    pub(super) fn parse<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Self, PatternError> {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for text in texts {
            match network(text.as_ref()).map(canonical) {
                Some(IpNet::V4(net)) => v4.push((net.network(), net.broadcast())),
                Some(IpNet::V6(net)) => v6.push((net.network(), net.broadcast())),
                None => return Err(PatternError::Network(text.as_ref().to_owned())),
            }
        }
        Ok(Self { v4: Ranges::new(v4), v6: Ranges::new(v6) })
    }

    pub(super) fn contain(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => self.v4.contain(address),
            IpAddr::V6(address) => self.v6.contain(address),
        }
    }
}

fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

/// IPv4 networks written as IPv6 become IPv4 again, as addresses do.
fn canonical(network: IpNet) -> IpNet {
    let mapped = |net: Ipv6Net| {
        let v4 = net.network().to_ipv4_mapped()?;
        Ipv4Net::new(v4, net.prefix_len().checked_sub(MAPPED_PREFIX)?).ok()
    };
    match network {
        IpNet::V6(net) => mapped(net).map_or(network, IpNet::V4),
        IpNet::V4(_) => network,
    }
}

/// First and last addresses, in order and apart.
struct Ranges<A>(Vec<(A, A)>);

impl<A: Copy + Ord> Ranges<A> {
    fn new(mut ranges: Vec<(A, A)>) -> Self {
        // Of those that begin together, the widest first. Networks that meet are one inside the other, so what is not
        // apart from its predecessor is within it.
        ranges.sort_unstable_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(&one.1)));
        ranges.dedup_by(|next, kept| next.1 <= kept.1);
        Self(ranges)
    }

    fn contain(&self, address: A) -> bool {
        let begun = self.0.partition_point(|(first, _)| *first <= address);
        self.0[..begun].last().is_some_and(|(_, last)| address <= *last)
    }
}
