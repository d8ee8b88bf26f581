use core::fmt;

/// A configuration mistake, displayed with a fix.
///
/// One request proves little, because health checks of balancers have no forwarding header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// The server attached no address.
    NoPeerAddress,
    /// A private peer sends a forwarding header.
    UntrustedProxy { header: String },
    /// A trusted proxy sends no header.
    NoForwardedAddress { header: String },
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPeerAddress => f.write_str(
                "key::client_ip() found no address of the peer in the request's extensions, so clients cannot be \
                 distinguished. With axum, enable tower-quota's feature `axum` and serve the app with \
                 `into_make_service_with_connect_info::<SocketAddr>()`; with tonic, enable the feature `tonic`; \
                 otherwise insert a `std::net::SocketAddr` into the request's extensions in an outer layer",
            ),
            // Logs must not contain addresses, which are personal data.
            Self::UntrustedProxy { header } => write!(
                f,
                "a peer with a private address sends `{header}` and looks like a proxy, but is counted as one client. If it \
                 is a proxy, trust its network: `key::client_ip().behind(Proxies::networks([\"10.0.0.0/8\"]), \
                 Source::XForwardedFor)`, with the `Source` that it writes; in a rules document, write `client_ip: \
                 {{ trusted_proxies: [10.0.0.0/8] }}`"
            ),
            Self::NoForwardedAddress { header } => write!(
                f,
                "a trusted proxy sends no `{header}`, so all clients behind it are counted as one. Give \
                 `ClientIp::behind` the source that the proxy writes; in a rules document, name its header, as in \
                 `client_ip: {{ trusted_proxies: [10.0.0.0/8], header: x-real-ip }}`"
            ),
        }
    }
}
