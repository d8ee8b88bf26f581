use core::net::IpAddr;

use ipnet::IpNet;

/// A set of addresses, as sorted and disjoint networks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Networks(Vec<IpNet>);

impl FromIterator<IpNet> for Networks {
    fn from_iter<I: IntoIterator<Item = IpNet>>(networks: I) -> Self {
        Self(IpNet::aggregate(&networks.into_iter().collect()))
    }
}

impl Networks {
    pub(crate) fn contain(&self, address: IpAddr) -> bool {
        // The search covers both families, because IPv4 sorts before IPv6.
        let begun = self
            .0
            .partition_point(|network| network.network() <= address);
        let nearest = self.0[..begun].last();
        nearest.is_some_and(|network| network.contains(&address))
    }
}
