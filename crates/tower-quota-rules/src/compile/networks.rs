use core::net::{IpAddr, Ipv4Addr};
use std::collections::{BTreeSet, HashMap};

use foldhash::quality::RandomState;
use ipnet::IpNet;
use tower_quota::when;

use crate::text::Network;

/// A map from networks to values. A look-up needs a hash for every length of a prefix.
#[derive(Debug)]
pub struct Networks<T> {
    values: HashMap<IpNet, Vec<T>, RandomState>,
    lengths: BTreeSet<u8>,
}

impl<T> FromIterator<(IpNet, T)> for Networks<T> {
    fn from_iter<I: IntoIterator<Item = (IpNet, T)>>(networks: I) -> Self {
        let mut values: HashMap<IpNet, Vec<T>, RandomState> = HashMap::default();
        let mut lengths = BTreeSet::new();
        for (network, value) in networks {
            lengths.insert(network.prefix_len());
            values.entry(network.trunc()).or_default().push(value);
        }
        Self { values, lengths }
    }
}

impl<T> Networks<T> {
    /// Returns whether there is no network.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the values of all networks that contain an address.
    pub fn find(&self, address: IpAddr) -> impl Iterator<Item = &T> {
        let lengths = self.lengths.iter();
        let networks = lengths.filter_map(move |length| IpNet::new(address, *length).ok());
        let values = networks.filter_map(|network| self.values.get(&network.trunc()));
        values.flatten()
    }
}

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
