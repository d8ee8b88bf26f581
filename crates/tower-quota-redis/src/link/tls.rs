use redis::{ClientTlsConfig, TlsCertificates};
use rustls::crypto::{CryptoProvider, ring};

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
