use core::time::Duration;

use clap::Args;
use http::{HeaderMap, StatusCode};
use tower_quota_rules::Network;

use super::problem::Problem;
use super::token::Token;

const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1"];

/// How the HTTP doors answer.
///
/// ```
/// use tower_quota_server::http::HttpOptions;
///
/// let mut options = HttpOptions::default();
/// options.trusted_proxies = vec!["10.0.0.0/8".parse()?];
/// options.token = Some("a-secret-of-24-characters".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Args)]
#[non_exhaustive]
pub struct HttpOptions {
    /// The gateways that may describe requests to `/v1/auth`, and the proxies between their clients and them. By default
    /// only this machine.
    ///
    /// Your clients must have addresses outside the networks, or the gateway must overwrite `X-Forwarded-For`.
    #[arg(
        long,
        env = "TOWER_QUOTA_TRUSTED_PROXIES",
        value_name = "NETWORKS",
        value_delimiter = ',',
        default_values = LOOPBACK
    )]
    pub trusted_proxies: Vec<Network>,
    /// The secret of callers. Gateways send it in `Tower-Quota-Token`, and other callers in `Authorization: Bearer`.
    #[arg(long, env = "TOWER_QUOTA_TOKEN", hide_env_values = true)]
    pub token: Option<Token>,
    /// The maximum number of bytes of a body, 64 KiB by default.
    #[arg(skip = Self::default().largest_body)]
    pub largest_body: usize,
    /// The longest time of a body, 5 s by default.
    #[arg(skip = Self::default().body_timeout)]
    pub body_timeout: Duration,
    /// The longest reservation, 10 minutes by default.
    #[arg(skip = Self::default().longest_reservation)]
    pub longest_reservation: Duration,
    /// The maximum number of open reservations, 10,000 by default. A call of several KiB counts once for each KiB.
    #[arg(skip = Self::default().most_reservations)]
    pub most_reservations: u32,
}

impl HttpOptions {
    /// Returns a problem unless the call has the token.
    pub(crate) fn authenticate(&self, headers: &HeaderMap) -> Result<(), Problem> {
        match &self.token {
            Some(token) if !token.is_bearer_of(headers) => Err(Problem::new(
                StatusCode::UNAUTHORIZED,
                "the call has no valid token: send `Authorization: Bearer` with the token of this server",
            )),
            _ => Ok(()),
        }
    }
}

impl Default for HttpOptions {
    fn default() -> Self {
        let loopback = LOOPBACK.into_iter();
        Self {
            trusted_proxies: loopback.filter_map(|text| text.parse().ok()).collect(),
            token: None,
            largest_body: 64 << 10,
            body_timeout: Duration::from_secs(5),
            longest_reservation: Duration::from_secs(600),
            most_reservations: 10_000,
        }
    }
}
