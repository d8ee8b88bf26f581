//! Options of the connection to an xDS server.

use core::time::Duration;
use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};
use tower_quota_rules::DurationText;

use crate::file::read;

/// The time after which the system finds a connection without an answer dead.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// The time between two questions to a silent server. Servers in Go end connections that ask more often than each 5 minutes.
const PING: Duration = Duration::from_secs(320);
/// The longest time of an answer to such a question.
const PONG: Duration = Duration::from_secs(20);

/// The most bytes of a response, if the option does not say it.
const LARGEST: usize = 16 << 20;

/// How to reach an xDS server.
#[derive(Clone, Debug, clap::Args)]
#[non_exhaustive]
pub struct XdsOptions {
    /// The xDS server with the limits, as a host and a port.
    #[arg(
        long = "xds-server",
        env = "CONFIG_GRPC_XDS_SERVER_URL",
        value_name = "HOST:PORT",
        default_value = "localhost:18000"
    )]
    pub server: String,
    /// The name of this server at the xDS server.
    #[arg(
        long = "xds-node",
        env = "CONFIG_GRPC_XDS_NODE_ID",
        default_value = "default"
    )]
    pub node: String,
    /// The longest pause between attempts to connect.
    #[arg(
        long = "xds-pause",
        env = "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL",
        value_name = "TIME",
        default_value = "3s"
    )]
    pub longest_pause: DurationText,
    /// The most bytes of an xDS response. 0 stands for the default.
    #[arg(
        long = "xds-bytes",
        env = "XDS_CLIENT_GRPC_OPTIONS_MAX_MSG_SIZE_IN_BYTES",
        value_name = "BYTES",
        default_value_t = LARGEST
    )]
    pub largest_response: usize,
    /// Connects to the xDS server over TLS.
    #[arg(long = "xds-tls", env = "CONFIG_GRPC_XDS_SERVER_USE_TLS", value_parser = FalseyValueParser::new())]
    pub tls: bool,
    /// The file with the certificate authorities of the xDS server.
    #[arg(
        long = "xds-ca",
        env = "CONFIG_GRPC_XDS_SERVER_TLS_CACERT",
        value_name = "FILE"
    )]
    pub authorities: Option<PathBuf>,
    /// The file with the certificate of this server, for mutual TLS.
    #[arg(
        long = "xds-cert",
        env = "CONFIG_GRPC_XDS_CLIENT_TLS_CERT",
        value_name = "FILE",
        requires = "key"
    )]
    pub certificate: Option<PathBuf>,
    /// The file with the private key of this server.
    #[arg(
        id = "key",
        long = "xds-key",
        env = "CONFIG_GRPC_XDS_CLIENT_TLS_KEY",
        value_name = "FILE"
    )]
    pub key: Option<PathBuf>,
    /// The name in the certificate of the xDS server, if it is not the host.
    #[arg(
        long = "xds-server-name",
        env = "CONFIG_GRPC_XDS_SERVER_TLS_SAN",
        value_name = "NAME"
    )]
    pub server_name: Option<String>,
    /// The longest silence of the xDS server. Then the server has 20 s to answer a ping.
    #[arg(skip = PING)]
    pub keepalive: Duration,
}

impl XdsOptions {
    pub(super) const fn largest_response(&self) -> usize {
        match self.largest_response {
            0 => LARGEST,
            bytes => bytes,
        }
    }

    /// Reads the files for TLS, which may have changed.
    pub(super) fn endpoint(&self) -> Result<Endpoint, String> {
        let scheme = if self.tls { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{}", self.server))
            .map_err(|error| format!("{}: write a host and a port", reason(&error)))?
            .tcp_keepalive(Some(KEEPALIVE))
            .http2_keep_alive_interval(self.keepalive)
            .keep_alive_timeout(PONG.min(self.keepalive));
        if !self.tls {
            return Ok(endpoint);
        }
        let authorities = self.authorities.as_deref().ok_or(
            "there is no certificate authority for TLS: set CONFIG_GRPC_XDS_SERVER_TLS_CACERT",
        )?;
        let mut tls =
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(authorities)?));
        if let (Some(certificate), Some(key)) = (&self.certificate, &self.key) {
            tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        if let Some(name) = &self.server_name {
            tls = tls.domain_name(name);
        }
        endpoint
            .tls_config(tls)
            .map_err(|error| format!("{}: check the certificates", reason(&error)))
    }
}

/// Returns the message of an error with the messages of its causes.
pub(super) fn reason(error: &dyn core::error::Error) -> String {
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        reason += &format!(", {error}");
        cause = error.source();
    }
    reason
}
