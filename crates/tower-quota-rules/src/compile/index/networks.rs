//! The index of networks.

use core::cmp::Reverse;
use core::net::IpAddr;

use ipnet::IpNet;
use tower_quota::when;

use super::nested::{Nested, Nests};

/// The first and the last address of a network. Of two with one first address, the larger comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Range(IpAddr, Reverse<IpAddr>);

impl Range {
    /// Returns the addresses of a network that a document names.
    pub(crate) fn of(network: &str) -> Option<Self> {
        let (first, last) = when::try_network_range(network).ok()?;
        Some(Self(first, Reverse(last)))
    }

    pub(crate) fn of_network(network: IpNet) -> Self {
        Self(network.network(), Reverse(network.broadcast()))
    }
}

impl Nests for Range {
    fn contains(&self, other: &Self) -> bool {
        self.0 <= other.0 && other.1.0 <= self.1.0
    }
}

impl Nested<Range> {
    /// Visits the numbers of all networks with this address.
    pub(crate) fn find_address(&self, address: IpAddr, visit: impl FnMut(u32)) {
        let probe = Range(address, Reverse(address));
        self.find(
            |range| *range > probe,
            |range| range.contains(&probe),
            visit,
        );
    }
}
