//! Counting by the peer's address.

use core::net::{IpAddr, SocketAddr};

use http::Extensions;
use tollgate_core::{Key, Name};

use super::KeyExtractor;
use crate::head::RequestHead;

const SCOPE: Name = Name::new("client ip");

/// Counts by the address of the peer: whoever opened the connection. No header is believed, so behind a proxy everybody
/// is the proxy.
///
/// IPv6 counts by its first 64 bits, see [`Key::address`]. The address is read from the request's extensions, where the
/// server or an outer layer must have put it:
///
/// * axum's `ConnectInfo<SocketAddr>`, with the feature `axum`: serve the app with
///   `into_make_service_with_connect_info::<SocketAddr>()`, or there is none;
/// * tonic's `TcpConnectInfo`, with the feature `tonic`: there on TCP, unless tonic itself speaks TLS;
/// * a bare [`SocketAddr`] or [`IpAddr`], put there by a layer of your own, such as one that copies it from tonic's
///   `TlsConnectInfo`: it is preferred to the others, since whoever puts it there knows better.
#[must_use]
pub const fn client_ip() -> ClientIp {
    ClientIp(())
}

/// The extractor of [`client_ip`].
#[derive(Clone, Copy, Debug)]
pub struct ClientIp(());

impl ClientIp {
    /// The address itself, if the request has one.
    #[must_use]
    pub fn address(&self, head: &RequestHead<'_>) -> Option<IpAddr> {
        peer(head.extensions())
    }
}

impl KeyExtractor for ClientIp {
    fn scope(&self) -> Name {
        SCOPE
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        self.address(head).map(|address| Key::address(SCOPE, address))
    }
}

fn peer(extensions: &Extensions) -> Option<IpAddr> {
    let own = || extensions.get::<IpAddr>().copied().or_else(|| extensions.get().map(SocketAddr::ip));
    own().or_else(|| from_axum(extensions)).or_else(|| from_tonic(extensions))
}

#[cfg(feature = "axum")]
fn from_axum(extensions: &Extensions) -> Option<IpAddr> {
    let axum::extract::ConnectInfo(address) = extensions.get::<axum::extract::ConnectInfo<SocketAddr>>()?;
    Some(address.ip())
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
