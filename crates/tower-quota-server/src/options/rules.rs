use std::path::PathBuf;

use clap::Args;

use crate::http::secret;

/// Flags of documents and of the admin API.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Documents")]
#[non_exhaustive]
pub struct RulesFlags {
    /// The document with the limits of the HTTP doors, or "redis" for the document that the servers of a Redis share.
    #[arg(long, env = "TOWER_QUOTA_RULES", value_name = "PATH")]
    pub rules: Option<PathBuf>,
    /// A file that keeps the last valid document, for a start while Redis is away.
    #[arg(long, env = "TOWER_QUOTA_RULES_COPY", value_name = "PATH")]
    pub rules_copy: Option<PathBuf>,
    /// The secret of the admin API, with at least 16 bytes. Without a secret there is no admin API.
    #[arg(
        long,
        env = "TOWER_QUOTA_ADMIN_TOKEN",
        value_name = "SECRET",
        hide_env_values = true,
        value_parser = secret
    )]
    pub admin_token: Option<String>,
    /// A file with the secrets of the admin API, as lines name:role:secret with the roles read, operate and rules.
    #[arg(long, env = "TOWER_QUOTA_ADMIN_TOKENS", value_name = "PATH")]
    pub admin_tokens: Option<PathBuf>,
}

impl RulesFlags {
    /// Returns whether the documents are in the Redis of the counters.
    #[must_use]
    pub fn are_in_redis(&self) -> bool {
        self.rules
            .as_ref()
            .is_some_and(|rules| rules.as_os_str() == "redis")
    }

    /// Returns whether there is an admin API.
    #[must_use]
    pub const fn has_admin(&self) -> bool {
        self.rules.is_some() && (self.admin_token.is_some() || self.admin_tokens.is_some())
    }
}
