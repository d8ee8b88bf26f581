//! Reads the target of a command, which is the admin API of a service.

use core::time::Duration;
use std::path::PathBuf;

use clap::Args;
use http::request::Builder;
use tower_quota_rules::{DurationText, TextError};

use super::api::Api;
use super::http::Client;
use crate::failure::Failure;
use crate::output::Ended;
use crate::rules::load::LoadArguments;

/// The arguments of a command on a service.
#[derive(Args, Debug)]
pub(crate) struct Remote<A: Args> {
    #[command(flatten)]
    command: A,
    #[command(flatten)]
    target: TargetArguments,
}

/// The service to operate on.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Target")]
pub(crate) struct TargetArguments {
    /// The address of a service's admin API. The token is read from the variable
    /// `TOWER_QUOTA_TOKEN` or from a file.
    #[arg(long, value_name = "URL", env = "TOWER_QUOTA_ADMIN")]
    admin: Option<String>,
    /// A file with the token of the admin API.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A file with trusted authorities in PEM, instead of the system's, for an address with https.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The longest wait for an answer.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
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
        let Some(address) = &self.admin else {
            let text = "give --admin with the address of an admin API";
            return Err(Failure::Usage(text.into()));
        };
        let (token_file, ca) = (self.token_file.as_deref(), self.ca.as_deref());
        Ok(Api {
            client: Client::new(address, token_file, ca, self.timeout)?,
            load: self.load.clone(),
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
