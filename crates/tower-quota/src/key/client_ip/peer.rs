//! The address of whoever opened the connection.

use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::{AtomicBool, Ordering};

use http::Extensions;

/// The peer's address as the server or an outer layer has told it; never a mapped one.
pub(super) fn of(extensions: &Extensions) -> Option<IpAddr> {
    let own = || extensions.get::<IpAddr>().copied().or_else(|| extensions.get().map(SocketAddr::ip));
    let told = own().or_else(|| from_axum(extensions).map(SocketAddr::ip)).or_else(|| from_tonic(extensions));
    told.map(|address| address.to_canonical())
}

/// The address that axum has told, where there is nothing else that could be preferred to it: found with one look.
#[inline]
pub(super) fn sole(extensions: &Extensions) -> Option<&SocketAddr> {
    if extensions.len() == 1 { from_axum(extensions) } else { None }
}

/// Tells whoever reads the logs what to add, once.
pub(super) fn report_missing() {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    if !REPORTED.swap(true, Ordering::Relaxed) {
        tracing::error!(
            "key::client_ip() found no address of the peer in the request's extensions, so this limit cannot tell \
             clients apart. With axum, enable tower-quota's feature `axum` and serve the app with \
             `into_make_service_with_connect_info::<SocketAddr>()`; with tonic, enable the feature `tonic`; \
             otherwise insert a `std::net::SocketAddr` into the request's extensions in an outer layer. \
             This is said once."
        );
    }
}

#[cfg(feature = "axum")]
#[inline]
fn from_axum(extensions: &Extensions) -> Option<&SocketAddr> {
    extensions.get().map(|axum::extract::ConnectInfo(address)| address)
}

#[cfg(not(feature = "axum"))]
const fn from_axum(_: &Extensions) -> Option<&SocketAddr> {
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
