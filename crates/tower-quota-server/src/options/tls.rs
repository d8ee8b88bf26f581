use std::path::PathBuf;

use clap::Args;
use clap::builder::FalseyValueParser;

/// Flags of certificates. A certificate makes a port serve TLS, and is read again when its file changes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "TLS")]
#[non_exhaustive]
pub struct TlsFlags {
    /// Serves gRPC by TLS. A certificate is enough, unless this is false.
    #[arg(
        long,
        env = "GRPC_SERVER_USE_TLS",
        num_args = 0..=1,
        default_missing_value = "true",
        value_name = "BOOL",
        value_parser = FalseyValueParser::new()
    )]
    pub grpc_tls: Option<bool>,
    /// The certificates of the server for gRPC, in PEM.
    #[arg(long, env = "GRPC_SERVER_TLS_CERT", value_name = "PATH")]
    pub grpc_tls_cert: Option<PathBuf>,
    /// The private key for gRPC, in PEM.
    #[arg(long, env = "GRPC_SERVER_TLS_KEY", value_name = "PATH")]
    pub grpc_tls_key: Option<PathBuf>,
    /// The authorities of clients for gRPC, in PEM. Clients then need a certificate.
    #[arg(long, env = "GRPC_CLIENT_TLS_CACERT", value_name = "PATH")]
    pub grpc_tls_client_ca: Option<PathBuf>,
    /// The same, by the name that Envoy Gateway sets.
    #[arg(
        long,
        env = "GRPC_SERVER_TLS_CA_CERT",
        value_name = "PATH",
        hide = true
    )]
    pub grpc_tls_ca_cert: Option<PathBuf>,
    /// The certificates of the server for HTTP.
    #[arg(long, env = "TOWER_QUOTA_HTTP_TLS_CERT", value_name = "PATH")]
    pub http_tls_cert: Option<PathBuf>,
    /// The private key for HTTP.
    #[arg(long, env = "TOWER_QUOTA_HTTP_TLS_KEY", value_name = "PATH")]
    pub http_tls_key: Option<PathBuf>,
    /// The authorities of clients for HTTP. Clients then need a certificate, and so do probes.
    #[arg(long, env = "TOWER_QUOTA_HTTP_TLS_CLIENT_CA", value_name = "PATH")]
    pub http_tls_client_ca: Option<PathBuf>,
    /// The certificates of the server for the admin port.
    #[arg(long, env = "TOWER_QUOTA_ADMIN_TLS_CERT", value_name = "PATH")]
    pub admin_tls_cert: Option<PathBuf>,
    /// The private key for the admin port.
    #[arg(long, env = "TOWER_QUOTA_ADMIN_TLS_KEY", value_name = "PATH")]
    pub admin_tls_key: Option<PathBuf>,
    /// The authorities of clients for the admin port. Clients then need a certificate.
    #[arg(long, env = "TOWER_QUOTA_ADMIN_TLS_CLIENT_CA", value_name = "PATH")]
    pub admin_tls_client_ca: Option<PathBuf>,
}

/// The files of a port with TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFiles {
    /// The certificates, the one of the server first.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The authorities of clients, if clients need a certificate.
    pub client_ca: Option<PathBuf>,
}

impl TlsFlags {
    /// Returns the files of a port, if the port serves TLS. The ports are `grpc`, `http` and `admin`.
    ///
    /// # Errors
    /// Returns the flag that is missing.
    pub fn files(&self, port: &str) -> Result<Option<TlsFiles>, String> {
        let (certificate, key, client_ca) = match port {
            "grpc" if self.grpc_tls == Some(false) => return Ok(None),
            "grpc" => (
                &self.grpc_tls_cert,
                &self.grpc_tls_key,
                self.grpc_tls_client_ca
                    .as_ref()
                    .or(self.grpc_tls_ca_cert.as_ref()),
            ),
            "http" => (
                &self.http_tls_cert,
                &self.http_tls_key,
                self.http_tls_client_ca.as_ref(),
            ),
            _ => (
                &self.admin_tls_cert,
                &self.admin_tls_key,
                self.admin_tls_client_ca.as_ref(),
            ),
        };
        let wants_tls = client_ca.is_some() || port == "grpc" && self.grpc_tls == Some(true);
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some(TlsFiles {
                certificate: certificate.clone(),
                key: key.clone(),
                client_ca: client_ca.cloned(),
            })),
            (None, None) if !wants_tls => Ok(None),
            _ => Err(format!(
                "TLS of the {port} port needs a certificate and its key: give --{port}-tls-cert and --{port}-tls-key"
            )),
        }
    }
}
