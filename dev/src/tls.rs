//! Certificates for servers with TLS.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Clients accept a self-signed certificate as a server's only if it is no authority.
const REQUEST: &str = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";

/// A private key and a self-signed certificate for `localhost` and 127.0.0.1.
///
/// Their files are deleted when this is dropped.
///
/// # Panics
/// [`TlsFiles::new`] panics when `openssl` is not installed: a test that needs TLS must not pass without it.
#[derive(Debug)]
pub struct TlsFiles {
    home: TempDir,
}

impl TlsFiles {
    /// Creates a new pair, valid for a day.
    #[must_use]
    #[expect(
        clippy::panic,
        reason = "documented: without a certificate there is no test"
    )]
    #[expect(
        clippy::new_without_default,
        reason = "a default should not run a program"
    )]
    pub fn new() -> Self {
        match Self::try_new() {
            Ok(files) => files,
            Err(error) => panic!("openssl created no certificate ({error}): install openssl"),
        }
    }

    /// Returns the path of the certificate, in PEM. A client that trusts it accepts the server.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.home.path().join("certificate.pem")
    }

    /// Returns the path of the private key, in PEM.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.home.path().join("key.pem")
    }

    /// Returns the settings that make a `redis-server` accept TLS. Clients need no certificate.
    pub(crate) fn server_settings(&self) -> String {
        format!(
            "tls-cert-file \"{}\"\ntls-key-file \"{}\"\ntls-auth-clients no\n",
            self.certificate().display(),
            self.key().display()
        )
    }

    /// Returns the settings of a cluster node with TLS between nodes, and for clients on a second port.
    pub(crate) fn node_settings(&self, port: u16) -> String {
        format!(
            "{}tls-ca-cert-file \"{}\"\ntls-port {port}\ntls-cluster yes\ntls-replication yes\n",
            self.server_settings(),
            self.certificate().display()
        )
    }

    fn try_new() -> io::Result<Self> {
        let files = Self {
            home: TempDir::new()?,
        };
        let status = Command::new("openssl")
            .args(REQUEST.split_whitespace())
            .arg("-keyout")
            .arg(files.key())
            .arg("-out")
            .arg(files.certificate())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        if status.success() {
            Ok(files)
        } else {
            Err(io::Error::other("openssl failed"))
        }
    }
}
