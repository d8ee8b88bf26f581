//! `source` and `list` read headers, `proxies` finds the client, `network` normalises addresses.

mod list;
mod network;
mod networks;
mod proxies;
mod source;
#[cfg(test)]
mod tests;

use core::net::{IpAddr, SocketAddr};

use http::Extensions;
use tower_quota_core::{ConfigError, Key, Name};

pub(crate) use self::network::network;
pub(crate) use self::networks::Networks;
pub use self::proxies::Proxies;
pub use self::source::Source;
pub(crate) use self::source::sent as forwarding_header;

use self::network::{Prefix, canonical, is_private};
use self::proxies::{Behind, untrusted_proxy};
use super::extractor::KeyExtractor;
use super::mistake::Mistake;
use crate::head::{Note, RequestHead};
use crate::valid::valid;

/// Counts by client address, the connection's peer unless you trust [proxies](ClientIp::behind).
///
/// Without trusted proxies, all clients behind a proxy share a counter. IPv6 counts by [/64](ClientIp::prefix_v6).
/// Mapped (`::ffff:0:0/96`) and NAT64 (`64:ff9b::/96`) addresses count as IPv4.
///
/// Your server or an outer layer must attach the peer's address, otherwise the layer [warns
/// you](crate::Check::NoPeerAddress). The extractor reads the first of:
///
/// 1. an [`IpAddr`] or [`SocketAddr`] extension from your own layer,
/// 2. `ConnectInfo<SocketAddr>` (feature `axum`). Serve with `into_make_service_with_connect_info::<SocketAddr>()`, and
///    test with `MockConnectInfo<SocketAddr>`.
/// 3. `TcpConnectInfo` from tonic's `Server` (feature `tonic`). If axum serves tonic's routes, use `ConnectInfo`.
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
    /// Trusts these proxies to report the client's address in one header.
    ///
    /// * An untrusted peer is the client.
    /// * [`Source::XForwardedFor`] and [`Source::Forwarded`] are lists. At most 32 entries in the last 4 KiB count.
    ///   From the right, the first entry that is not a trusted proxy is the client.
    /// * If an entry is not an address, the proxy that wrote the entry is the client.
    /// * If all entries are trusted networks, the left-most is the client. If a list is shorter than [`Proxies::hops`],
    ///   the peer is the client.
    /// * Other sources hold one address. If absent, repeated or invalid, the peer is the client.
    ///
    /// Choose a source that your proxy *overwrites or appends to*. A policy [refuses](ConfigError::SharedScope) limits
    /// that trust different proxies for one source.
    #[must_use]
    #[doc(alias = "trusted proxies")]
    #[doc(alias = "trust proxy")]
    pub fn behind(mut self, proxies: Proxies, source: Source) -> Self {
        self.behind = Some(Behind { proxies, source });
        self.renamed()
    }

    /// Counts IPv6 by the first `bits` bits, 1 to 128 (default 64).
    ///
    /// A customer with a /48 (RFC 6177) owns 65,536 /64 networks. Add larger quotas for shorter prefixes to stop such
    /// clients.
    ///
    /// # Panics
    /// Panics if `bits` is out of range.
    #[must_use]
    #[track_caller]
    pub fn prefix_v6(self, bits: u8) -> Self {
        valid(self.try_prefix_v6(bits))
    }

    /// Works like [`ClientIp::prefix_v6`], but never panics.
    ///
    /// # Errors
    /// Returns an error if `bits` is out of range.
    pub fn try_prefix_v6(mut self, bits: u8) -> Result<Self, ConfigError> {
        self.prefix.v6 = prefix_bits(bits, 128)?;
        Ok(self.renamed())
    }

    /// Counts IPv4 by the first `bits` bits, 1 to 32 (default 32).
    ///
    /// # Panics
    /// Panics if `bits` is out of range.
    #[must_use]
    #[track_caller]
    pub fn prefix_v4(self, bits: u8) -> Self {
        valid(self.try_prefix_v4(bits))
    }

    /// Works like [`ClientIp::prefix_v4`], but never panics.
    ///
    /// # Errors
    /// Returns an error if `bits` is out of range.
    pub fn try_prefix_v4(mut self, bits: u8) -> Result<Self, ConfigError> {
        self.prefix.v4 = prefix_bits(bits, 32)?;
        Ok(self.renamed())
    }

    /// Returns the client's full address for your logs, with mapped IPv6 as IPv4.
    #[must_use]
    pub fn address(&self, head: &RequestHead<'_>) -> Option<IpAddr> {
        let peer = peer(head.extensions());
        let client = match &self.behind {
            None => peer,
            Some(behind) => behind.client(peer, head.headers()),
        };
        head.note(|| {
            let (scope, mistake) = (self.scope, self.mistake(head));
            (self.behind.is_some() || mistake.is_some()).then_some(Note::Address { scope, mistake })
        });
        client
    }

    /// Returns the key of this address.
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

    pub(super) fn mistake(&self, head: &RequestHead<'_>) -> Option<Mistake> {
        let peer = peer(head.extensions());
        match (&self.behind, peer) {
            (Some(behind), _) => behind.mistake(peer, head.headers()),
            (None, Some(peer)) if is_private(peer) => untrusted_proxy(head.headers()),
            (None, Some(_)) => None,
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

    fn parse(&self, text: &str) -> Option<Key<'static>> {
        self.prefix.parse(self.scope, text)
    }
}

fn prefix_bits(bits: u8, most: u8) -> Result<u8, ConfigError> {
    if bits == 0 || bits > most {
        return Err(ConfigError::AddressPrefix { bits, most });
    }
    Ok(bits)
}

/// Returns the address of the connection.
fn peer(extensions: &Extensions) -> Option<IpAddr> {
    let own = extensions.get::<IpAddr>().copied();
    own.or_else(|| extensions.get().map(SocketAddr::ip))
        .or_else(|| from_axum(extensions))
        .or_else(|| from_tonic(extensions))
        .map(canonical)
}

#[cfg(feature = "axum")]
fn from_axum(extensions: &Extensions) -> Option<IpAddr> {
    use axum::extract::ConnectInfo;
    use axum::extract::connect_info::MockConnectInfo;

    let connected = extensions.get().map(|ConnectInfo(address)| address);
    connected
        .or_else(|| extensions.get().map(|MockConnectInfo(address)| address))
        .map(SocketAddr::ip)
}

#[cfg(not(feature = "axum"))]
const fn from_axum(_: &Extensions) -> Option<IpAddr> {
    None
}

#[cfg(feature = "tonic")]
fn from_tonic(extensions: &Extensions) -> Option<IpAddr> {
    let connection = extensions.get::<tonic::transport::server::TcpConnectInfo>()?;
    connection.remote_addr().map(|address| address.ip())
}

#[cfg(not(feature = "tonic"))]
const fn from_tonic(_: &Extensions) -> Option<IpAddr> {
    None
}
