//! Calls of a service's admin API over HTTP.

use core::time::Duration;
use std::path::Path;
use std::{env, fs};

use http::header::AUTHORIZATION;
use http::{HeaderValue, StatusCode};
use ureq::Agent;

use super::call::{Answer, Call};
use super::tls;
use crate::failure::Failure;

/// The variable that holds the token. A token is never an argument, which other users of a machine can read.
pub(super) const TOKEN_VARIABLE: &str = "TOWER_QUOTA_TOKEN";

/// The most bytes of an answer.
const LONGEST_ANSWER: u64 = 64 << 20;

/// The admin API of a service.
#[derive(Clone, Debug)]
pub(crate) struct HttpApi {
    agent: Agent,
    address: String,
    authorization: Option<HeaderValue>,
}

impl HttpApi {
    /// Makes a client of the API at an address. `authorities` are the certificates to trust over https, in PEM.
    pub(super) fn new(
        address: &str,
        token_file: Option<&Path>,
        authorities: Option<&[u8]>,
        timeout: Duration,
    ) -> Result<Self, Failure> {
        let scheme = address
            .split_once("://")
            .map(|(scheme, _)| scheme.to_ascii_lowercase());
        if !matches!(scheme.as_deref(), Some("http" | "https")) {
            return Err(Failure::Usage(format!(
                "{address} is not an address that this command can use: give https://HOST:PORT, or http://HOST:PORT where the \
                 network is private"
            )));
        }
        let token = match token_file {
            Some(path) => {
                let text = fs::read_to_string(path);
                Some(text.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?)
            }
            None => env::var(TOKEN_VARIABLE).ok(),
        };
        let authorization = match token
            .as_deref()
            .map(str::trim)
            .filter(|token| !token.is_empty())
        {
            Some(token) => {
                let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
                    Failure::Usage("the token has characters that no header can hold".into())
                })?;
                value.set_sensitive(true);
                Some(value)
            }
            None => None,
        };
        let mut settings = Agent::config_builder();
        if scheme.as_deref() == Some("https") {
            settings = settings.tls_config(tls::trusting(authorities)?);
        }
        let agent = settings
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            // A token goes nowhere else.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("tower-quota/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Ok(Self {
            agent,
            address: address.to_owned(),
            authorization,
        })
    }

    pub(crate) fn send(&self, call: &Call) -> Result<Answer, Failure> {
        let mut request = call.request(&self.address)?;
        if let Some(authorization) = &self.authorization {
            request
                .headers_mut()
                .insert(AUTHORIZATION, authorization.clone());
        }
        let unreachable = |error: ureq::Error| match error {
            ureq::Error::BadUri(reason) => Failure::Usage(format!("{}: {reason}", self.address)),
            error => Failure::Unreachable(match tls::refused_certificate(&error) {
                Some(reason) => {
                    format!(
                        "{} is not trusted: {reason}: give its authority with --ca FILE",
                        self.address
                    )
                }
                None => format!("{}: {error}", self.address),
            }),
        };
        let (head, mut body) = self.agent.run(request).map_err(unreachable)?.into_parts();
        let body = body
            .with_config()
            .limit(LONGEST_ANSWER)
            .read_to_string()
            .map_err(unreachable)?;
        if head.status == StatusCode::UNAUTHORIZED && self.authorization.is_none() {
            return Err(Failure::Problem(format!(
                "{} asks for a token: set {TOKEN_VARIABLE} or give --token-file",
                self.address
            )));
        }
        Answer::of(&head, body)
    }
}
