//! The bounds of each port.

use core::time::Duration;

use crate::options::PortFlags;

/// What a port serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::serve) enum Protocol {
    Grpc,
    Http,
    /// HTTP/1 with event streams.
    Admin,
    /// The metrics alone.
    Metrics,
}

/// The bounds of a port and its connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) connections: u32,
    /// The time until the first request is complete, and before that for the handshake of TLS.
    pub(super) first_request: Duration,
    /// The time without a request after which a connection ends. The time may be up to twice as long.
    pub(super) idle: Duration,
    /// The longest time until the head of a response.
    pub(super) request: Duration,
    pub(super) age: Duration,
    /// The time for running requests of a connection that is too old.
    pub(super) age_grace: Duration,
}

/// The most connections of the admin port, and of the port for the metrics alone.
const ADMIN_CONNECTIONS: u32 = 64;

impl Protocol {
    pub(in crate::serve) const fn name(self) -> &'static str {
        match self {
            Self::Grpc => "grpc",
            Self::Http => "http",
            Self::Admin => "admin",
            Self::Metrics => "metrics",
        }
    }

    /// Returns the names of the protocols for ALPN.
    pub(in crate::serve) const fn alpn(self) -> &'static [&'static str] {
        match self {
            Self::Grpc => &["h2"],
            Self::Http => &["h2", "http/1.1"],
            Self::Admin | Self::Metrics => &["http/1.1"],
        }
    }
}

impl Bounds {
    pub(super) const fn of(protocol: Protocol, flags: &PortFlags) -> Self {
        let usual = Self {
            connections: ADMIN_CONNECTIONS,
            first_request: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            request: Duration::from_secs(10),
            age: Duration::MAX,
            age_grace: Duration::ZERO,
        };
        match protocol {
            Protocol::Grpc => Self {
                connections: flags.grpc_connections,
                idle: Duration::from_secs(300),
                age: flags.grpc_age,
                age_grace: flags.grpc_age_grace,
                ..usual
            },
            Protocol::Http => Self {
                connections: flags.http_connections,
                // Limits may delay requests, by 30 seconds unless a document says more.
                request: Duration::from_secs(60),
                ..usual
            },
            Protocol::Admin | Protocol::Metrics => usual,
        }
    }
}
