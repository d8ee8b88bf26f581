use core::net::IpAddr;

use ipnet::IpNet;

/// The first and last addresses, sorted and disjoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Networks(Vec<(IpAddr, IpAddr)>);

impl FromIterator<IpNet> for Networks {
    fn from_iter<I: IntoIterator<Item = IpNet>>(networks: I) -> Self {
        let mut ranges: Vec<(IpAddr, IpAddr)> = networks
            .into_iter()
            .map(|network| (network.network(), network.broadcast()))
            .collect();
        // Larger networks come first. If two networks overlap, the larger contains the smaller, so a network that
        // overlaps its predecessor adds no addresses.
        ranges.sort_unstable_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(&one.1)));
        ranges.dedup_by(|next, kept| next.1 <= kept.1);
        Self(ranges)
    }
}

impl Networks {
    pub(crate) fn contain(&self, address: IpAddr) -> bool {
        // IPv4 sorts before IPv6.
        let begun = self.0.partition_point(|(first, _)| *first <= address);
        let nearest = self.0[..begun].last();
        nearest.is_some_and(|(_, last)| address <= *last)
    }
}
