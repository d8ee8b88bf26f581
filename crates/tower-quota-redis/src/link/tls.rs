//! Settings of TLS.

use redis::TlsCertificates;
use rustls::crypto::{CryptoProvider, ring};

/// Makes rustls use ring, unless the program has chosen otherwise: with no choice made it would panic.
pub(super) fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Fails if another thread was first.
        let _ = ring::default_provider().install_default();
    }
}

/// Trusts these certificates alone, in PEM.
pub(super) fn trusting(pem: &[u8]) -> TlsCertificates {
    TlsCertificates {
        client_tls: None,
        root_cert: Some(pem.to_vec()),
    }
}
