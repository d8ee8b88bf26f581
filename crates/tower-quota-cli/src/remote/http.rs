use core::time::Duration;
use std::path::Path;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response, StatusCode};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::failure::Failure;

/// The variable with the token. Arguments are readable by other users of the machine, so tokens are
/// never arguments.
pub(super) const TOKEN_VARIABLE: &str = "TOWER_QUOTA_TOKEN";

const LONGEST_ANSWER: u64 = 64 << 20;

/// A client of the admin API at an address.
pub(super) struct Client {
    pub(super) address: String,
    authorization: Option<HeaderValue>,
    agent: Agent,
}

impl Client {
    /// Creates a client. The file `ca` has trusted certificates in PEM.
    pub(super) fn new(
        address: &str,
        token: Option<&str>,
        ca: Option<&Path>,
        timeout: Duration,
    ) -> Result<Self, Failure> {
        if !address.starts_with("https://") && !address.starts_with("http://") {
            return Err(Failure::Usage(format!(
                "{address} is not an address that this command can use: give https://HOST:PORT, or http://HOST:PORT where the \
                 network is private"
            )));
        }
        let mut settings = Agent::config_builder();
        if address.starts_with("https://") {
            settings = settings.tls_config(trusting(ca)?);
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
        Ok(Self {
            address: address.trim_end_matches('/').to_owned(),
            authorization: token.map(bearer).transpose()?,
            agent,
        })
    }

    pub(super) fn send(&self, mut request: Request<String>) -> Result<Response<String>, Failure> {
        let address = &self.address;
        let uri = format!("{address}{}", request.uri()).parse();
        *request.uri_mut() = uri.map_err(Failure::at(address))?;
        if let Some(authorization) = &self.authorization {
            let headers = request.headers_mut();
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let answer = self.agent.run(request);
        let (head, mut body) = answer.map_err(|error| self.failed(&error))?.into_parts();
        if head.status == StatusCode::UNAUTHORIZED && self.authorization.is_none() {
            return Err(Failure::Problem(format!(
                "{address} needs a token: set {TOKEN_VARIABLE}, or give --token-file or --context"
            )));
        }
        let body = body.with_config().limit(LONGEST_ANSWER).read_to_string();
        let body = body.map_err(|error| self.failed(&error))?;
        Ok(Response::from_parts(head, body))
    }

    fn failed(&self, error: &ureq::Error) -> Failure {
        let (address, text) = (&self.address, error.to_string());
        Failure::Unreachable(if text.contains("certificate") {
            format!("{address} is not trusted: {text}: give its authority with --ca FILE")
        } else {
            format!("{address}: {text}")
        })
    }
}

fn bearer(token: &str) -> Result<HeaderValue, Failure> {
    let value = HeaderValue::try_from(format!("Bearer {}", token.trim()));
    let mut value = value
        .map_err(|_| Failure::Usage("the token has characters that no header can hold".into()))?;
    value.set_sensitive(true);
    Ok(value)
}

fn trusting(ca: Option<&Path>) -> Result<TlsConfig, Failure> {
    let certificates = match ca {
        Some(path) => read_authorities(path)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let certificates = certificates.iter();
    let certificates: Vec<_> = certificates
        .map(|certificate| Certificate::from_der(certificate).to_owned())
        .collect();
    let config = TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(certificates)))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
    Ok(config.build())
}

/// Reads a file of certificates in PEM, with at least one certificate.
fn read_authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let found = CertificateDer::pem_file_iter(path).map_err(Failure::at(path.display()))?;
    let found: Vec<_> = found.flatten().collect();
    match found.is_empty() {
        true => Err(Failure::at(path.display())(
            "there is no certificate in it: give a file in PEM",
        )),
        false => Ok(found),
    }
}
