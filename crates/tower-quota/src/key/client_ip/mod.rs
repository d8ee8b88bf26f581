//! Keys from the client's address.
//!
//! `peer` reads the address of the connection, `source` and `list` read the headers of proxies, `proxies` decides which
//! addresses are trusted, and `network` has the form in which addresses are compared.

mod list;
mod network;
mod networks;
mod peer;
mod proxies;
mod source;
#[cfg(test)]
mod tests;

use core::net::IpAddr;

use tower_quota_core::{ConfigError, Key, Name};

pub(crate) use self::network::network;
pub(crate) use self::networks::Networks;
pub use self::proxies::Proxies;
pub use self::source::Source;
pub(crate) use self::source::sent as forwarding_header;

use self::network::{Prefix, canonical};
use self::proxies::{Behind, untrusted};
use super::extractor::KeyExtractor;
use super::mistake::Mistake;
use crate::head::RequestHead;
use crate::valid::valid;

/// Counts by the address of the client: the peer of the connection, unless you trust [proxies](ClientIp::behind).
///
/// Without trusted proxies no header is read, so behind a proxy all clients are counted as the proxy. IPv4 counts by
/// address, IPv6 by its first 64 bits, see [`ClientIp::prefix_v6`]. An IPv4 address that is written as IPv6, mapped
/// (`::ffff:0:0/96`) or by NAT64 (`64:ff9b::/96`), is the IPv4 address.
///
/// The server or an outer layer must attach the peer's address to the request. The first of these counts:
///
/// 1. a bare [`IpAddr`] or [`SocketAddr`](core::net::SocketAddr) in the extensions, from your own layer;
/// 2. with the feature `axum`, `ConnectInfo<SocketAddr>`: serve the app with
///    `into_make_service_with_connect_info::<SocketAddr>()`, and test it with `MockConnectInfo<SocketAddr>`;
/// 3. with the feature `tonic`, `TcpConnectInfo`, which tonic's `Server` attaches on TCP. If axum serves tonic's routes, see
///    2.
///
/// Without an address, the layer logs a warning that says how to fix it
/// ([`Check::NoPeerAddress`](crate::Check::NoPeerAddress)).
///
/// ```
/// use tower_quota::{Limit, Policy, Quota, key};
/// use key::{Proxies, Source};
///
/// // A balancer in 10.0.0.0/8 writes X-Forwarded-For. Owners of many networks are also counted by larger networks.
/// let client = key::client_ip().behind(Proxies::networks(["10.0.0.0/8"]), Source::XForwardedFor);
/// let policy = Policy::new()
///     .limit(Limit::new("network", Quota::per_minute(100)).by(client.clone()))
///     .limit(Limit::new("home", Quota::per_minute(300)).by(client.clone().prefix_v6(56)))
///     .limit(Limit::new("site", Quota::per_minute(1_000)).by(client.prefix_v6(48)));
/// # let _ = policy;
/// ```
#[must_use]
#[doc(alias = "peer ip")]
#[doc(alias = "remote address")]
#[doc(alias = "x-forwarded-for")]
#[doc(alias = "SmartIp")]
pub const fn client_ip() -> ClientIp {
    ClientIp {
        scope: Name::new("ip"),
        prefix: Prefix::DEFAULT,
        behind: None,
    }
}

/// The extractor of [`client_ip`].
#[derive(Clone, Debug)]
pub struct ClientIp {
    scope: Name,
    prefix: Prefix,
    behind: Option<Behind>,
}

impl ClientIp {
    /// Trusts these proxies to report the client's address in this one header.
    ///
    /// * A peer that is not one of the proxies is the client, whatever headers it sends.
    /// * [`Source::XForwardedFor`] and [`Source::Forwarded`] are lists, read from the right, where the nearest proxy has
    ///   written. The first entry that is not a trusted proxy is the client. Clients can forge the entries to its left.
    /// * If an entry is not an address, the proxy that wrote it is counted as the client.
    /// * If all entries are in trusted networks, the left-most is the client. If the list is shorter than
    ///   [`Proxies::hops`], the request has bypassed a proxy, and the peer is the client.
    /// * At most 32 entries in the last 4 KiB are read.
    /// * The other sources hold one address. If it is absent, sent twice, or not an address, the peer is the client.
    ///
    /// Choose the source that your proxy *overwrites or appends to*. Clients write headers that it passes on. A policy
    /// [refuses](ConfigError::SharedScope) limits that trust different proxies for one source.
    #[must_use]
    #[doc(alias = "trusted proxies")]
    #[doc(alias = "trust proxy")]
    pub fn behind(mut self, proxies: Proxies, source: Source) -> Self {
        self.behind = Some(Behind { proxies, source });
        self.renamed()
    }

    /// Counts IPv6 by the first `bits` bits, 1 to 128, instead of 64.
    ///
    /// Providers give a customer a /64, /56 or /48 (RFC 6177). The owner of a /48 has 65,536 networks of 64 bits. Add
    /// limits with larger quotas for shorter prefixes to stop such clients without affecting their neighbours.
    ///
    /// # Panics
    /// If `bits` is 0 or more than 128; see [`ClientIp::try_prefix_v6`].
    #[must_use]
    #[track_caller]
    pub fn prefix_v6(self, bits: u8) -> Self {
        valid(self.try_prefix_v6(bits))
    }

    /// Works like [`ClientIp::prefix_v6`], but returns an error for an invalid number.
    ///
    /// # Errors
    /// [`ConfigError::AddressPrefix`] if `bits` is 0 or more than 128.
    pub fn try_prefix_v6(mut self, bits: u8) -> Result<Self, ConfigError> {
        if !matches!(bits, 1..=128) {
            return Err(ConfigError::AddressPrefix { bits, most: 128 });
        }
        self.prefix.v6 = bits;
        Ok(self.renamed())
    }

    /// Counts IPv4 by the first `bits` bits, 1 to 32, instead of all.
    ///
    /// # Panics
    /// If `bits` is 0 or more than 32; see [`ClientIp::try_prefix_v4`].
    #[must_use]
    #[track_caller]
    pub fn prefix_v4(self, bits: u8) -> Self {
        valid(self.try_prefix_v4(bits))
    }

    /// Works like [`ClientIp::prefix_v4`], but returns an error for an invalid number.
    ///
    /// # Errors
    /// [`ConfigError::AddressPrefix`] if `bits` is 0 or more than 32.
    pub fn try_prefix_v4(mut self, bits: u8) -> Result<Self, ConfigError> {
        if !matches!(bits, 1..=32) {
            return Err(ConfigError::AddressPrefix { bits, most: 32 });
        }
        self.prefix.v4 = bits;
        Ok(self.renamed())
    }

    /// Returns the client's full address, for your logs and lists; `None` if the server attached none.
    ///
    /// An IPv4 address that is written as IPv6 is returned as IPv4.
    #[must_use]
    pub fn address(&self, head: &RequestHead<'_>) -> Option<IpAddr> {
        let peer = peer::of(head.extensions());
        let client = match &self.behind {
            None => peer,
            Some(behind) => behind.client(peer, head.headers()),
        };
        if let Some(watch) = head.watch() {
            watch.address(self.scope.as_str(), self.mistake(head), head);
        }
        client
    }

    /// Returns the key of a client with this address.
    ///
    /// ```
    /// use tower_quota::key;
    ///
    /// let address = "2001:db8:1:2:3:4:5:6".parse().unwrap();
    /// assert_eq!(key::client_ip().key_of(address).as_bytes(), [0x20, 1, 0xd, 0xb8, 0, 1, 0, 2]);
    /// assert_eq!(key::client_ip().prefix_v6(32).key_of(address).as_bytes(), [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0]);
    /// ```
    pub fn key_of(&self, address: IpAddr) -> Key<'static> {
        self.prefix.key(self.scope, canonical(address))
    }

    pub(super) fn proxies(&self) -> Option<&Proxies> {
        self.behind.as_ref().map(|behind| &behind.proxies)
    }

    /// Returns the mistake in the server's configuration that this request shows, if any.
    pub(super) fn mistake(&self, head: &RequestHead<'_>) -> Option<Mistake> {
        let peer = peer::of(head.extensions());
        match (&self.behind, peer) {
            (Some(behind), _) => behind.mistake(peer, head.headers()),
            (None, Some(peer)) => untrusted(peer, head.headers()),
            (None, None) => Some(Mistake::NoPeerAddress),
        }
    }

    fn renamed(mut self) -> Self {
        self.scope = self
            .prefix
            .scope(self.behind.as_ref().map(|behind| behind.source.name()));
        self
    }
}

impl KeyExtractor for ClientIp {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        self.address(head)
            .map(|address| self.prefix.key(self.scope, address))
    }

    /// Reads an address, or a network with the counted prefix length.
    fn parse(&self, text: &str) -> Option<Key<'static>> {
        self.prefix.parse(self.scope, text)
    }
}
