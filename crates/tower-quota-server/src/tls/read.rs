//! Reads the files of a port.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::error::TlsError;
use crate::options::TlsFiles;

/// The contents of the files.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Texts {
    pub(super) fn read(files: &TlsFiles) -> Result<Self, TlsError> {
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
    ) -> Result<ServerConfig, TlsError> {
        let chain = certificates(&files.certificate, &self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| {
            let reason = format!("no private key ({error}): write a key in PEM");
            TlsError::new(&files.key, reason)
        })?;
        let mismatch = |error| {
            let reason = format!("{error}: give the private key of the first certificate");
            TlsError::new(&files.key, reason)
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(mismatch)?;
        let config = match (&files.client_ca, &self.client_ca) {
            (Some(file), Some(text)) => {
                let unusable = |error: &dyn core::fmt::Display| {
                    let reason = format!("{error}: give the certificates of the authorities");
                    TlsError::new(file, reason)
                };
                let mut roots = RootCertStore::empty();
                for authority in certificates(file, text)? {
                    roots.add(authority).map_err(|error| unusable(&error))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = verifier.build().map_err(|error| unusable(&error))?;
                config.with_client_cert_verifier(verifier)
            }
            _ => config.with_no_client_auth(),
        };
        let mut config = config.with_single_cert(chain, key).map_err(mismatch)?;
        config.alpn_protocols = protocols.to_vec();
        Ok(config)
    }
}

fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(file).map_err(|error| {
        let reason = format!("{error}: check the path and its permissions");
        TlsError::new(file, reason)
    })
}

fn certificates(file: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let found = found.map_err(|error| {
        let reason = format!("no certificate ({error}): write certificates in PEM");
        TlsError::new(file, reason)
    })?;
    match found.is_empty() {
        true => Err(TlsError::new(
            file,
            "no certificate: write certificates in PEM".into(),
        )),
        false => Ok(found),
    }
}

/// Keeps the key out of logs.
impl core::fmt::Debug for Texts {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Texts").finish_non_exhaustive()
    }
}
