use core::net::{IpAddr, SocketAddr};

use http::Extensions;

use super::network::canonical;

pub(super) fn of(extensions: &Extensions) -> Option<IpAddr> {
    let own = || {
        extensions
            .get::<IpAddr>()
            .copied()
            .or_else(|| extensions.get().map(SocketAddr::ip))
    };
    own()
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
