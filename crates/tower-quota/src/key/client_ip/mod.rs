//! Counting by the client's address.

mod elements;
mod forwarded;
mod node;
mod peer;
mod prefix;
mod proxies;
mod source;

use core::net::{IpAddr, SocketAddr};

use tower_quota_core::{ConfigError, Key, Name};

pub use self::proxies::Proxies;
pub use self::source::Source;

use self::prefix::Prefix;
use self::proxies::Behind;
use super::{KeyExtractor, identity_of};
use crate::head::RequestHead;

/// Counts by the address of the client: the peer, who opened the connection, unless [told](ClientIp::behind) which
/// proxies stand in front. Until then no header is believed, so behind a proxy everybody is the proxy.
///
/// IPv4 counts by address, IPv6 by its first 64 bits, see [`ClientIp::prefix_v6`]. An IPv4 address mapped into IPv6 is
/// the IPv4 address.
///
/// The peer is read from the request's extensions, where the server or an outer layer must have put it:
///
/// * axum's `ConnectInfo<SocketAddr>`, with the feature `axum`: serve the app with
///   `into_make_service_with_connect_info::<SocketAddr>()`, or there is none;
/// * tonic's `TcpConnectInfo`, with the feature `tonic`: there on TCP, unless tonic itself speaks TLS;
/// * a bare [`SocketAddr`](core::net::SocketAddr) or [`IpAddr`], put there by a layer of your own, such as one that
///   copies it from tonic's `TlsConnectInfo`, or by whoever reads the PROXY protocol: it is preferred to the others,
///   since whoever puts it there knows better.
///
/// The first request for which there is none is reported through `tracing`, once per process, as an error that says
/// what to add. Such requests have no key; see [`MissingKey`](crate::MissingKey).
///
/// ```
/// use tower_quota::{Limit, Policy, Quota, key};
/// use key::{Proxies, Source};
///
/// // A balancer in 10.0.0.0/8 writes X-Forwarded-For. Who owns many networks is counted by larger ones too.
/// let client = key::client_ip().behind(Proxies::networks(["10.0.0.0/8"]), Source::XForwardedFor);
/// let policy = Policy::new()
///     .limit(Limit::new("network", Quota::per_minute(100)).by(client.clone()))
///     .limit(Limit::new("home", Quota::per_minute(300)).by(client.clone().prefix_v6(56)))
///     .limit(Limit::new("site", Quota::per_minute(1_000)).by(client.prefix_v6(48)));
/// # let _ = policy;
/// ```
#[must_use]
pub const fn client_ip() -> ClientIp {
    ClientIp { scope: Name::new(prefix::SCOPE), prefix: Prefix::DEFAULT, behind: None }
}

/// The extractor of [`client_ip`].
#[derive(Clone, Debug)]
pub struct ClientIp {
    scope: Name,
    prefix: Prefix,
    behind: Option<Behind>,
}

impl ClientIp {
    /// Believes these proxies, and none but this one source, in which they tell whom they speak for.
    ///
    /// * A peer that is not one of the proxies is the client, whatever headers it sends.
    /// * In [`Source::XForwardedFor`] and [`Source::Forwarded`] all lines are one list. It is read from the right,
    ///   where the nearest proxy has written, and the first that is not a trusted proxy is the client. What stands
    ///   further left the client may have made up.
    /// * Where an entry is no address, reading stops: the proxy that wrote it is the client. Never is anything further
    ///   left believed, so a client who spoils the list shares the counter of a proxy.
    /// * If all of the list are trusted networks, the left-most is the client. If it is shorter than the number of
    ///   [`Proxies::hops`], somebody went round the proxies, and the peer is the client.
    /// * At most 32 entries in the last 4 KiB of the list are read.
    /// * The other sources hold one address. Absent, sent twice, or no address, the peer is the client.
    ///
    /// Choose the source that your proxy *overwrites or appends to*: one that it passes on untouched is the client's
    /// own word. Limits of one policy that read one source must trust the same proxies, or they would count different
    /// addresses as one key: a policy refuses them with [`ConfigError::SharedScope`].
    #[must_use]
    pub fn behind(mut self, proxies: Proxies, source: Source) -> Self {
        self.behind = Some(Behind { proxies, source });
        self.renamed()
    }

    /// Counts IPv6 by the first `bits` bits, 1 to 128, instead of 64. A network of 64 bits is the least that a provider
    /// hands to one customer, 56 and 48 are usual (RFC 6177): whoever owns 48 owns 65,536 networks of 64. Several
    /// limits of growing quotas by shrinking prefixes catch such clients without hurting their neighbours.
    ///
    /// # Panics
    /// When `bits` is 0 or more than 128; see [`ClientIp::try_prefix_v6`].
    #[must_use]
    #[track_caller]
    pub fn prefix_v6(self, bits: u8) -> Self {
        written_in_code(self.try_prefix_v6(bits))
    }

    /// [`ClientIp::prefix_v6`] for a number that was not written in code.
    ///
    /// # Errors
    /// [`ConfigError::AddressPrefix`] when `bits` is 0 or more than 128.
    pub fn try_prefix_v6(mut self, bits: u8) -> Result<Self, ConfigError> {
        self.prefix = self.prefix.with_v6(bits)?;
        Ok(self.renamed())
    }

    /// Counts IPv4 by the first `bits` bits, 1 to 32, instead of all.
    ///
    /// # Panics
    /// When `bits` is 0 or more than 32; see [`ClientIp::try_prefix_v4`].
    #[must_use]
    #[track_caller]
    pub fn prefix_v4(self, bits: u8) -> Self {
        written_in_code(self.try_prefix_v4(bits))
    }

    /// [`ClientIp::prefix_v4`] for a number that was not written in code.
    ///
    /// # Errors
    /// [`ConfigError::AddressPrefix`] when `bits` is 0 or more than 32.
    pub fn try_prefix_v4(mut self, bits: u8) -> Result<Self, ConfigError> {
        self.prefix = self.prefix.with_v4(bits)?;
        Ok(self.renamed())
    }

    /// The client's whole address, for logs and lists of your own: not cut to a prefix, never a mapped one. `None` when
    /// the server attached no address of the peer.
    #[must_use]
    pub fn address(&self, head: &RequestHead<'_>) -> Option<IpAddr> {
        let peer = peer::of(head.extensions());
        let client = match &self.behind {
            None => peer,
            Some(behind) => behind.client(peer, head.headers()),
        };
        if client.is_none() {
            peer::report_missing();
        }
        client
    }

    fn renamed(mut self) -> Self {
        self.scope = self.prefix.scope(self.behind.as_ref().map(|behind| behind.source.name()));
        self
    }
}

impl KeyExtractor for ClientIp {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        if let (None, Some(SocketAddr::V4(v4))) = (&self.behind, peer::sole(head.extensions())) {
            return Some(self.prefix.key_v4(self.scope, *v4.ip()));
        }
        self.address(head).map(|address| self.prefix.key(self.scope, address))
    }

    fn identity(&self) -> u64 {
        // Prefix and source are in the scope.
        identity_of::<Self>(&self.behind.as_ref().map(|behind| &behind.proxies))
    }
}

#[track_caller]
fn written_in_code<T>(built: Result<T, ConfigError>) -> T {
    match built {
        Ok(built) => built,
        #[expect(clippy::panic, reason = "documented: what is written in code fails at start")]
        Err(error) => panic!("{error}"),
    }
}
