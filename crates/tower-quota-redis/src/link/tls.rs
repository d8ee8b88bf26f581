//! What TLS needs to be told.

use redis::TlsCertificates;
use rustls::crypto::{CryptoProvider, ring};

/// Has rustls use ring, unless the program has chosen otherwise: it would panic if nothing, or several things, were there
/// to choose from.
pub(super) fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have been faster.
        let _ = ring::default_provider().install_default();
    }
}

/// Trust in these certificates alone, in PEM.
pub(super) fn trusting(pem: &[u8]) -> TlsCertificates {
    TlsCertificates { client_tls: None, root_cert: Some(pem.to_vec()) }
}
