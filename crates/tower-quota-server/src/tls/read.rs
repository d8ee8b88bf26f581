//! Reads the files of a port.

use core::fmt::{self, Display};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::file::read;
use crate::options::TlsFiles;

/// The contents of the files.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Texts {
    pub(super) fn read(files: &TlsFiles) -> Result<Self, String> {
        Ok(Self {
            certificate: read(&files.certificate)?,
            key: read(&files.key)?,
            client_ca: files.client_ca.as_deref().map(read).transpose()?,
        })
    }

    pub(super) fn config(
        &self,
        files: &TlsFiles,
        protocols: &[Vec<u8>],
    ) -> Result<ServerConfig, String> {
        let chain = certificates(&files.certificate, &self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| unusable(&files.key, error, "write a private key in PEM"))?;
        let mismatch = |error| unusable(&files.key, error, "give the key of the first certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(mismatch)?;
        let config = match (&files.client_ca, &self.client_ca) {
            (Some(file), Some(text)) => {
                let fix = "give the certificates of the authorities";
                let mut roots = RootCertStore::empty();
                for authority in certificates(file, text)? {
                    roots
                        .add(authority)
                        .map_err(|error| unusable(file, error, fix))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = verifier
                    .build()
                    .map_err(|error| unusable(file, error, fix))?;
                config.with_client_cert_verifier(verifier)
            }
            _ => config.with_no_client_auth(),
        };
        let mut config = config.with_single_cert(chain, key).map_err(mismatch)?;
        config.alpn_protocols = protocols.to_vec();
        Ok(config)
    }
}

fn certificates(file: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let fix = "write certificates in PEM";
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let found = found.map_err(|error| unusable(file, error, fix))?;
    match found.is_empty() {
        true => Err(unusable(file, "no certificate", fix)),
        false => Ok(found),
    }
}

fn unusable(file: &Path, error: impl Display, fix: &str) -> String {
    format!("{}: {error}: {fix}", file.display())
}

/// Keeps the key out of logs.
impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texts").finish_non_exhaustive()
    }
}
