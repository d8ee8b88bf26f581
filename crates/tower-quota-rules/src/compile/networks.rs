use core::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use tower_quota::when;

use crate::text::Network;

impl Network {
    /// Returns the network as the layer compares addresses.
    ///
    /// IPv4-mapped IPv6 networks become IPv4.
    #[must_use]
    pub fn to_net(&self) -> IpNet {
        let range = when::try_network_range(self.as_str()).ok();
        let network = range.and_then(|(first, last)| {
            let mut networks = core::iter::successors(Some(IpNet::from(first)), IpNet::supernet);
            networks.find(|network| network.contains(&last))
        });
        // The text is always a valid network, so the default is never used.
        network.unwrap_or(IpNet::from(IpAddr::V4(Ipv4Addr::BROADCAST)))
    }
}
