//! The target of a command: an admin API, or Redis.

use core::time::Duration;
use std::path::PathBuf;

use clap::Args;
use tower_quota_rules::DurationText;

use super::call::{Answer, Call};
use super::http::HttpApi;
use super::local::{LocalApi, RedisArguments};
use super::tls;
use crate::failure::Failure;

/// The service or the store that a command operates on.
#[derive(Args, Clone, Debug)]
pub(crate) struct TargetArguments {
    /// The address of a service's admin API. The token is read from the variable `TOWER_QUOTA_TOKEN` or from a file.
    #[arg(
        long,
        value_name = "URL",
        env = "TOWER_QUOTA_ADMIN",
        conflicts_with = "redis",
        help_heading = "Target"
    )]
    pub(crate) admin: Option<String>,
    /// A file with the token of the admin API.
    #[arg(long, value_name = "FILE", help_heading = "Target")]
    pub(crate) token_file: Option<PathBuf>,
    /// A file with the authorities to trust, in PEM, instead of the system's: of an admin API over https, or of Redis
    /// over TLS.
    #[arg(long, value_name = "FILE", help_heading = "Target")]
    pub(crate) ca: Option<PathBuf>,
    /// The Redis that services share, if they have no admin API: a URL with the scheme redis or rediss,
    /// redis+sentinel://HOST,HOST/PRIMARY or redis+cluster://HOST,HOST. A password is better in the variable.
    #[arg(
        long,
        value_name = "URL",
        env = "TOWER_QUOTA_REDIS",
        hide_env_values = true,
        help_heading = "Target"
    )]
    pub(crate) redis: Option<String>,
    #[command(flatten)]
    pub(crate) store: RedisArguments,
    /// The longest wait for an answer.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration, help_heading = "Target")]
    pub(crate) timeout: Duration,
}

/// A connection to the admin API of a service, or to one in this process.
pub(crate) enum Connection {
    Http(HttpApi),
    Local(Box<LocalApi>),
}

impl TargetArguments {
    pub(crate) fn connect(&self) -> Result<Connection, Failure> {
        match (&self.admin, &self.redis) {
            (Some(admin), _) => self.http(admin).map(Connection::Http),
            (None, Some(redis)) => {
                let api = LocalApi::new(redis, self.authorities()?, &self.store, self.timeout)?;
                Ok(Connection::Local(Box::new(api)))
            }
            (None, None) => Err(Failure::Usage(
                "give --admin with the address of an admin API, or --redis".into(),
            )),
        }
    }

    /// Connects to a service, for what each instance knows by itself.
    pub(crate) fn instance(&self, known: &str) -> Result<HttpApi, Failure> {
        let Some(admin) = &self.admin else {
            let text = format!(
                "{known} are known to the instances, not to Redis: give --admin with the address of one"
            );
            return Err(Failure::Usage(text));
        };
        self.http(admin)
    }

    fn http(&self, admin: &str) -> Result<HttpApi, Failure> {
        HttpApi::new(
            admin,
            self.token_file.as_deref(),
            self.authorities()?.as_deref(),
            self.timeout,
        )
    }

    fn authorities(&self) -> Result<Option<Vec<u8>>, Failure> {
        self.ca.as_deref().map(tls::read_authorities).transpose()
    }
}

impl Connection {
    pub(crate) fn send(&self, call: &Call) -> Result<Answer, Failure> {
        match self {
            Self::Http(api) => api.send(call),
            Self::Local(api) => api.send(call),
        }
    }
}

/// Reads a time span such as `90s` or `1h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let span: DurationText = text
        .parse()
        .map_err(|error: tower_quota_rules::TextError| error.to_string())?;
    Ok(span.into())
}
