use clap::Args;
use clap::builder::FalseyValueParser;
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
    /// Reads X-Original-Method and X-Original-URI or X-Original-URL, as ingress-nginx sends them, in place of X-Forwarded-*.
    #[arg(long, env = "TOWER_QUOTA_ORIGINAL_FIELDS", value_parser = FalseyValueParser::new())]
    pub original_fields: bool,
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
        options.original_fields = self.original_fields;
        options.token.clone_from(&self.token);
        options
    }
}
