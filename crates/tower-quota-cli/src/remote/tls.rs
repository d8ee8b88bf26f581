//! The certificates of servers that commands trust.

use core::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::failure::Failure;

/// Reads a file of certificates in PEM: the text, which must have at least one.
pub(super) fn read_authorities(path: &Path) -> Result<Vec<u8>, Failure> {
    let unusable =
        |reason: &dyn core::fmt::Display| Failure::Usage(format!("{}: {reason}", path.display()));
    let pem = fs::read(path).map_err(|error| unusable(&error))?;
    match certificates(&pem) {
        Ok(found) if !found.is_empty() => Ok(pem),
        Ok(_) => Err(unusable(
            &"there is no certificate in it: give a file in PEM",
        )),
        Err(error) => Err(unusable(&error)),
    }
}

/// Makes the settings of TLS that trust these authorities, in PEM, or those of the system.
pub(super) fn trusting(authorities: Option<&[u8]>) -> Result<TlsConfig, Failure> {
    let certificates = match authorities {
        Some(pem) => certificates(pem).map_err(|error| Failure::Usage(error.to_string()))?,
        None => {
            let found = rustls_native_certs::load_native_certs().certs;
            found
                .iter()
                .map(|certificate| Certificate::from_der(certificate).to_owned())
                .collect()
        }
    };
    let settings = TlsConfig::builder().root_certs(RootCerts::Specific(Arc::new(certificates)));
    Ok(settings
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build())
}

/// Returns the reason why a server's certificate was refused, if that is what an error says.
pub(super) fn refused_certificate(error: &ureq::Error) -> Option<String> {
    let reason = match error {
        ureq::Error::Rustls(reason) => Some(reason),
        ureq::Error::Io(error) => error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<rustls::Error>()),
        other => other
            .source()
            .and_then(|source| source.downcast_ref::<rustls::Error>()),
    };
    reason
        .filter(|reason| matches!(reason, rustls::Error::InvalidCertificate(_)))
        .map(ToString::to_string)
}

fn certificates(pem: &[u8]) -> Result<Vec<Certificate<'static>>, ureq::Error> {
    let certificate = |item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    };
    parse_pem(pem).filter_map(certificate).collect()
}
