//! The index of networks.

use core::net::IpAddr;
use std::collections::{BTreeSet, HashMap};

use foldhash::quality::RandomState;
use ipnet::IpNet;
use tower_quota::when::{self, PatternError};

/// Values by network. A look-up takes one hash for each length of a prefix.
#[derive(Debug)]
pub(crate) struct Networks<T> {
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
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the values of all networks that contain an address.
    pub(crate) fn find(&self, address: IpAddr) -> impl Iterator<Item = &T> {
        let lengths = self.lengths.iter();
        let networks = lengths.filter_map(move |length| IpNet::new(address, *length).ok());
        let values = networks.filter_map(|network| self.values.get(&network.trunc()));
        values.flatten()
    }
}

/// Returns the network of a text.
pub(super) fn network_of(text: &str) -> Result<IpNet, PatternError> {
    let (first, last) = when::try_network_range(text)?;
    let length = match (first, last) {
        (IpAddr::V4(first), IpAddr::V4(last)) => (first.to_bits() ^ last.to_bits()).leading_zeros(),
        (IpAddr::V6(first), IpAddr::V6(last)) => (first.to_bits() ^ last.to_bits()).leading_zeros(),
        _ => 0,
    };
    let network = IpNet::new(first, u8::try_from(length).unwrap_or_default());
    network.map_err(|_| PatternError::Network(text.to_owned()))
}
