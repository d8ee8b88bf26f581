use core::time::Duration;
use std::path::Path;
use std::sync::Arc;
use std::{env, fs};

use http::header::AUTHORIZATION;
use http::{HeaderValue, Response, StatusCode};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::api::SendRequest;
use crate::failure::Failure;

/// The variable with the token. Arguments are readable by other users of the machine, so tokens are
/// never arguments.
const TOKEN_VARIABLE: &str = "TOWER_QUOTA_TOKEN";

const LONGEST_ANSWER: u64 = 64 << 20;

/// Creates a client of the API at an address. `authorities` are trusted certificates in PEM.
pub(super) fn client(
    address: &str,
    token_file: Option<&Path>,
    authorities: Option<&[u8]>,
    timeout: Duration,
) -> Result<Box<SendRequest>, Failure> {
    if !address.starts_with("https://") && !address.starts_with("http://") {
        return Err(Failure::Usage(format!(
            "{address} is not an address that this command can use: give https://HOST:PORT, or http://HOST:PORT where the \
                 network is private"
        )));
    }
    let token = match token_file {
        Some(path) => fs::read_to_string(path).map_err(Failure::at(path.display()))?,
        None => env::var(TOKEN_VARIABLE).unwrap_or_default(),
    };
    let mut authorization = None;
    if !token.trim().is_empty() {
        let value = HeaderValue::try_from(format!("Bearer {}", token.trim()));
        let mut value = value.map_err(|_| {
            Failure::Usage("the token has characters that no header can hold".into())
        })?;
        value.set_sensitive(true);
        authorization = Some(value);
    }
    let mut settings = Agent::config_builder();
    if address.starts_with("https://") {
        settings = settings.tls_config(trusting(authorities));
    }
    let agent = settings
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        // Follow no redirect, which must not receive the token.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("tower-quota/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent();
    let address = address.trim_end_matches('/').to_owned();
    Ok(Box::new(move |mut request| {
        let uri = format!("{address}{}", request.uri()).parse();
        *request.uri_mut() = uri.map_err(Failure::at(&address))?;
        if let Some(authorization) = &authorization {
            let headers = request.headers_mut();
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let failed = |error: ureq::Error| {
            let text = error.to_string();
            if text.contains("certificate") {
                let text =
                    format!("{address} is not trusted: {text}: give its authority with --ca FILE");
                return Failure::Unreachable(text);
            }
            Failure::Unreachable(format!("{address}: {text}"))
        };
        let (head, mut body) = agent.run(request).map_err(failed)?.into_parts();
        if head.status == StatusCode::UNAUTHORIZED && authorization.is_none() {
            return Err(Failure::Problem(format!(
                "{address} needs a token: set {TOKEN_VARIABLE} or give --token-file"
            )));
        }
        let body = body.with_config().limit(LONGEST_ANSWER).read_to_string();
        Ok(Response::from_parts(head, body.map_err(failed)?))
    }))
}

/// Reads a file of certificates in PEM, with at least one certificate.
pub(super) fn read_authorities(path: &Path) -> Result<Vec<u8>, Failure> {
    let unusable = |reason: String| Failure::Usage(format!("{}: {reason}", path.display()));
    let pem = fs::read(path).map_err(|error| unusable(error.to_string()))?;
    if CertificateDer::pem_slice_iter(&pem).any(|found| found.is_ok()) {
        Ok(pem)
    } else {
        let text = "there is no certificate in it: give a file in PEM";
        Err(unusable(text.into()))
    }
}

fn trusting(authorities: Option<&[u8]>) -> TlsConfig {
    let certificates = match authorities {
        Some(pem) => CertificateDer::pem_slice_iter(pem).flatten().collect(),
        None => rustls_native_certs::load_native_certs().certs,
    };
    let certificates: Vec<_> = certificates
        .iter()
        .map(|certificate| Certificate::from_der(certificate).to_owned())
        .collect();
    TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(certificates)))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build()
}
