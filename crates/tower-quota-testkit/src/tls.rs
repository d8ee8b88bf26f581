//! Certificates for servers that speak TLS.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A key and a certificate for `localhost` and 127.0.0.1 that vouches for itself, in files that are gone when dropped.
///
/// # Panics
/// [`TlsFiles::new`] panics when `openssl` is not installed: a test that needs TLS must not pass without it.
#[derive(Debug)]
pub struct TlsFiles {
    home: TempDir,
}

impl TlsFiles {
    /// Makes a new pair, valid for a day.
    #[must_use]
    #[expect(clippy::panic, reason = "documented: without a certificate there is no test")]
    #[expect(clippy::new_without_default, reason = "it runs a program: no default should")]
    pub fn new() -> Self {
        match Self::try_new() {
            Ok(files) => files,
            Err(error) => panic!("no certificate could be made ({error}): install openssl"),
        }
    }

    /// The certificate, in PEM. Who trusts it trusts the server.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.home.path().join("certificate.pem")
    }

    /// The private key, in PEM.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.home.path().join("key.pem")
    }

    /// What makes a `redis-server` speak TLS. It asks its clients for no certificate.
    pub(crate) fn of_a_server(&self) -> Vec<String> {
        let [certificate, key] = [self.certificate(), self.key()].map(|path| path.to_string_lossy().into_owned());
        let options = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-auth-clients", "no"];
        options.map(str::to_owned).to_vec()
    }

    /// The same on a port beside the plain one, for a node of a cluster that speaks TLS with the others too.
    pub(crate) fn of_a_member(&self, port: u16) -> Vec<String> {
        let (trusted, port) = (self.certificate().to_string_lossy().into_owned(), port.to_string());
        let mut options = self.of_a_server();
        let further = ["--tls-port", &port, "--tls-ca-cert-file", &trusted];
        let among_nodes = ["--tls-cluster", "yes", "--tls-replication", "yes"];
        options.extend(further.into_iter().chain(among_nodes).map(str::to_owned));
        options
    }

    fn try_new() -> io::Result<Self> {
        let files = Self { home: TempDir::new()? };
        let status = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"])
            .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
            // A certificate that vouches for itself and is no authority: what clients take for a server's.
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .arg("-keyout")
            .arg(files.key())
            .arg("-out")
            .arg(files.certificate())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        if status.success() { Ok(files) } else { Err(io::Error::other("openssl failed")) }
    }
}
