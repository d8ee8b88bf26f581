//! Sets of networks.

use core::net::IpAddr;

use ipnet::IpNet;

/// A set of networks: their first and last addresses, sorted and disjoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Networks(Vec<(IpAddr, IpAddr)>);

impl FromIterator<IpNet> for Networks {
    fn from_iter<I: IntoIterator<Item = IpNet>>(networks: I) -> Self {
        let mut ranges: Vec<(IpAddr, IpAddr)> = networks
            .into_iter()
            .map(|network| (network.network(), network.broadcast()))
            .collect();
        // Networks with the same first address are sorted by size, the largest first. If two networks overlap, one
        // contains the other. So a network that is not disjoint from its predecessor is inside it.
        ranges.sort_unstable_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(&one.1)));
        ranges.dedup_by(|next, kept| next.1 <= kept.1);
        Self(ranges)
    }
}

impl Networks {
    /// Returns whether an address, in its own family, is in one of the networks.
    pub(crate) fn contain(&self, address: IpAddr) -> bool {
        // IPv4 addresses sort before IPv6 addresses.
        let begun = self.0.partition_point(|(first, _)| *first <= address);
        let nearest = self.0[..begun].last();
        nearest.is_some_and(|(_, last)| address <= *last)
    }
}
