use redis::{ClientTlsConfig, ErrorKind, RedisResult, TlsCertificates};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::Certificates;

/// Chooses ring, because rustls panics if no crypto provider is installed.
pub(super) fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Ignore the error, which says that another thread was first.
        let _ = ring::default_provider().install_default();
    }
}

pub(super) fn of(certificates: &Certificates) -> Option<TlsCertificates> {
    let Certificates { roots, client } = certificates.clone();
    let is_default = roots.is_none() && client.is_none();
    let client_tls = client.map(|(client_cert, client_key)| ClientTlsConfig {
        client_cert,
        client_key,
    });
    (!is_default).then_some(TlsCertificates {
        client_tls,
        root_cert: roots,
    })
}

/// Refuses a text without a certificate, which would trust no server.
pub(super) fn check(certificates: &TlsCertificates) -> RedisResult<()> {
    let client = certificates.client_tls.as_ref();
    let chains = [
        certificates.root_cert.as_ref(),
        client.map(|client| &client.client_cert),
    ];
    for pem in chains.into_iter().flatten() {
        if CertificateDer::pem_slice_iter(pem).next().is_none() {
            return Err((ErrorKind::InvalidClientConfig, "there is no certificate").into());
        }
    }
    Ok(())
}
