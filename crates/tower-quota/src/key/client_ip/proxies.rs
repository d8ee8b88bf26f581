use core::net::IpAddr;

use http::HeaderMap;
use tower_quota_core::ConfigError;

use super::network::{is_private, network};
use super::networks::Networks;
use super::source::{Source, sent};
use crate::key::mistake::Mistake;
use crate::valid::valid;

/// Your trusted proxies, for [`ClientIp::behind`](super::ClientIp::behind).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "trusted proxies")]
pub struct Proxies(Trust);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Trust {
    Networks(Networks),
    Hops(u8),
}

impl Proxies {
    pub(super) const MAX_HOPS: u8 = 32;

    /// Trusts proxies by networks like `"10.0.0.0/8"`, or addresses. An empty list trusts no proxy.
    ///
    /// Your clients must have addresses outside the networks.
    ///
    /// # Panics
    /// Panics if an entry is invalid.
    #[must_use]
    #[track_caller]
    pub fn networks(networks: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        valid(Self::try_networks(networks))
    }

    /// Works like [`Proxies::networks`], but never panics.
    ///
    /// # Errors
    /// Returns an error if an entry is invalid.
    pub fn try_networks(
        networks: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, ConfigError> {
        let parsed =
            |text: &str| network(text).ok_or_else(|| ConfigError::Network(text.to_owned()));
        let all = networks
            .into_iter()
            .map(|text| parsed(text.as_ref().trim()))
            .collect::<Result<_, _>>()?;
        Ok(Self(Trust::Networks(all)))
    }

    /// Trusts `count` proxies, 1 to 32, whatever their addresses.
    ///
    /// With 1, the client is the right-most list entry; with 2, the next. Google's balancers append two entries.
    ///
    /// Clients that can bypass your proxies can forge addresses.
    ///
    /// # Panics
    /// Panics if `count` is out of range.
    #[must_use]
    #[track_caller]
    pub fn hops(count: u8) -> Self {
        valid(Self::try_hops(count))
    }

    /// Works like [`Proxies::hops`], but never panics.
    ///
    /// # Errors
    /// Returns an error if `count` is out of range.
    pub const fn try_hops(count: u8) -> Result<Self, ConfigError> {
        if matches!(count, 1..=Self::MAX_HOPS) {
            Ok(Self(Trust::Hops(count)))
        } else {
            Err(ConfigError::ProxyHops(count))
        }
    }

    /// Returns whether you trust this proxy. The peer is at distance 0.
    fn contain(&self, address: Option<IpAddr>, distance: usize) -> bool {
        match &self.0 {
            Trust::Networks(networks) => address.is_some_and(|address| networks.contain(address)),
            Trust::Hops(count) => distance < usize::from(*count),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Behind {
    pub(super) proxies: Proxies,
    pub(super) source: Source,
}

impl Behind {
    pub(super) fn client(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<IpAddr> {
        if !self.proxies.contain(peer, 0) {
            return peer;
        }
        match self.source.list(headers) {
            Some(list) => self.walk(peer, list),
            None => self.source.single(headers).or(peer),
        }
    }

    /// Walks to the client, and trusts only entries of trusted proxies.
    fn walk(
        &self,
        peer: Option<IpAddr>,
        entries: impl Iterator<Item = Option<IpAddr>>,
    ) -> Option<IpAddr> {
        let mut farthest = peer;
        for (entry, distance) in entries.take(usize::from(Proxies::MAX_HOPS)).zip(1..) {
            if entry.is_none() {
                return farthest;
            }
            farthest = entry;
            if !self.proxies.contain(entry, distance) {
                return farthest;
            }
        }
        match self.proxies.0 {
            Trust::Networks(_) => farthest,
            Trust::Hops(_) => peer,
        }
    }

    pub(super) fn mistake(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<Mistake> {
        if self.client(peer, headers).is_none() {
            return Some(Mistake::NoPeerAddress);
        }
        if !self.proxies.contain(peer, 0) {
            return match peer {
                Some(peer) if is_private(peer) => untrusted_proxy(headers),
                _ => None,
            };
        }
        if !headers.contains_key(self.source.name()) {
            return Some(Mistake::NoForwardedAddress {
                header: self.source.name().to_owned(),
            });
        }
        None
    }
}

/// Returns the mistake that a private peer shows if it sends a forwarding header.
pub(super) fn untrusted_proxy(headers: &HeaderMap) -> Option<Mistake> {
    let header = sent(headers)?.to_owned();
    Some(Mistake::UntrustedProxy { header })
}
