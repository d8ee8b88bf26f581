//! Reads the target of a command, which is an admin API or Redis.

use core::time::Duration;
use std::path::PathBuf;

use clap::Args;
use http::request::Builder;
use tower_quota_rules::{DurationText, TextError};

use super::api::Api;
use super::http::{client, read_authorities};
use super::local::{self, RedisArguments};
use crate::failure::Failure;
use crate::output::Ended;

/// The arguments of a command on a service.
#[derive(Args, Debug)]
pub(crate) struct Remote<A: Args> {
    #[command(flatten)]
    command: A,
    #[command(flatten)]
    target: TargetArguments,
}

/// The service or the store to operate on.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Target")]
pub(crate) struct TargetArguments {
    /// The address of a service's admin API. The token is read from the variable
    /// `TOWER_QUOTA_TOKEN` or from a file.
    #[arg(
        long,
        value_name = "URL",
        env = "TOWER_QUOTA_ADMIN",
        conflicts_with = "redis"
    )]
    admin: Option<String>,
    /// A file with the token of the admin API.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A file with trusted authorities in PEM, instead of the system's, for an admin API over https
    /// or for Redis over TLS.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The Redis of your services, if they have no admin API. Give a URL with the scheme redis or
    /// rediss, redis+sentinel://HOST,HOST/PRIMARY or redis+cluster://HOST,HOST. Set a URL with a
    /// password in the variable.
    #[arg(
        long,
        value_name = "URL",
        env = "TOWER_QUOTA_REDIS",
        hide_env_values = true
    )]
    redis: Option<String>,
    /// The longest wait for an answer.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    pub(crate) store: RedisArguments,
}

#[derive(Args, Debug)]
pub(crate) struct ChangeArguments {
    /// The reason, for the history and the audit log.
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
}

impl<A: Args> Remote<A> {
    pub(crate) fn run(&self, command: impl FnOnce(&A, &Api) -> Ended) -> Ended {
        command(&self.command, &self.target.connect()?)
    }
}

impl TargetArguments {
    pub(crate) fn connect(&self) -> Result<Api, Failure> {
        let authorities = self.ca.as_deref().map(read_authorities).transpose()?;
        let (send, name) = match (&self.admin, &self.redis) {
            (Some(admin), _) => {
                let token_file = self.token_file.as_deref();
                let client = client(admin, token_file, authorities.as_deref(), self.timeout)?;
                (client, admin.clone())
            }
            (None, Some(redis)) => {
                // Show the host only, which follows the password.
                let host = redis.rsplit('@').next().unwrap_or_default();
                let name = format!("{host} {}", self.store.name);
                let api = local::api(redis, authorities, &self.store, self.timeout)?;
                (api, name)
            }
            (None, None) => {
                let text = "give --admin with the address of an admin API, or --redis";
                return Err(Failure::Usage(text.into()));
            }
        };
        Ok(Api {
            send,
            is_local: self.admin.is_none(),
            name,
            load: self.store.load.clone(),
        })
    }
}

impl ChangeArguments {
    pub(super) fn on(&self, request: Builder) -> Builder {
        match &self.comment {
            Some(comment) => request.header("x-comment", comment.as_bytes()),
            None => request,
        }
    }
}

/// Reads a time span such as `90s` or `1h`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let span = text.parse::<DurationText>();
    Ok(span.map_err(|error: TextError| error.to_string())?.into())
}
