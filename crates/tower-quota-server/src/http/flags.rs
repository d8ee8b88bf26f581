use clap::Args;
use tower_quota_rules::Network;

use super::options::HttpOptions;
use super::token::Token;

/// The flags of the HTTP doors.
#[derive(Clone, Debug, Args)]
#[non_exhaustive]
pub struct HttpFlags {
    /// The gateways that may ask /v1/auth, and the proxies in front of them, as networks. By default only this machine.
    #[arg(
        long,
        env = "TOWER_QUOTA_TRUSTED_PROXIES",
        value_name = "NETWORKS",
        value_delimiter = ','
    )]
    pub trusted_proxies: Vec<Network>,
    /// The secret of callers, in Authorization: Bearer. Gateways send it in Tower-Quota-Token.
    #[arg(long, env = "TOWER_QUOTA_TOKEN", hide_env_values = true)]
    pub token: Option<Token>,
}

impl HttpFlags {
    /// Returns the settings of the doors.
    #[must_use]
    pub fn options(&self) -> HttpOptions {
        let mut options = HttpOptions::default();
        if !self.trusted_proxies.is_empty() {
            options.trusted_proxies.clone_from(&self.trusted_proxies);
        }
        options.token.clone_from(&self.token);
        options
    }
}
