//! Reads the target of a command, which is the admin API of a service.

use core::time::Duration;
use std::path::PathBuf;
use std::{env, fs};

use clap::Args;
use http::request::Builder;
use tower_quota_rules::{DurationText, TextError};

use super::api::Api;
use super::contexts::{Context, Contexts};
use super::http::{Client, TOKEN_VARIABLE};
use crate::failure::Failure;
use crate::output::Ended;
use crate::rules::load::LoadArguments;

const ADMIN_VARIABLE: &str = "TOWER_QUOTA_ADMIN";
const CONTEXT_VARIABLE: &str = "TOWER_QUOTA_CONTEXT";

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
    /// The address of a service's admin API. Defaults to the variable `TOWER_QUOTA_ADMIN`.
    #[arg(long, value_name = "URL", conflicts_with = "context")]
    admin: Option<String>,
    /// A service in tower-quota/contexts.toml of your folder ~/.config. Defaults to the variable
    /// `TOWER_QUOTA_CONTEXT`.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// A file with the token of the admin API. Defaults to the token of the context, and then to
    /// the variable `TOWER_QUOTA_TOKEN`.
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
    /// Returns another instance with the same token.
    pub(super) fn at(&self, admin: &str) -> Self {
        Self {
            admin: Some(admin.to_owned()),
            context: None,
            ..self.clone()
        }
    }

    pub(crate) fn connect(&self) -> Result<Api, Failure> {
        let service = self.service()?;
        let token = match self.token_file.as_ref().or(service.token_file.as_ref()) {
            Some(path) => Some(fs::read_to_string(path).map_err(Failure::at(path.display()))?),
            None => variable(TOKEN_VARIABLE),
        };
        let ca = self.ca.as_deref().or(service.ca.as_deref());
        Ok(Api {
            client: Client::new(&service.admin, token.as_deref(), ca, self.timeout)?,
            load: self.load.clone(),
        })
    }

    fn service(&self) -> Result<Context, Failure> {
        let (admin, context) = match (self.admin.clone(), self.context.clone()) {
            (None, None) => (variable(ADMIN_VARIABLE), variable(CONTEXT_VARIABLE)),
            given => given,
        };
        match (admin, context) {
            (Some(admin), None) => Ok(Context::at(admin)),
            (None, Some(name)) => Contexts::read()?.named(&name),
            (Some(_), Some(_)) => Err(Failure::Usage(format!(
                "{ADMIN_VARIABLE} and {CONTEXT_VARIABLE} name two services: unset one, or give --admin or --context"
            ))),
            (None, None) => Err(Failure::Usage(
                "which service? Give --admin with the address of an admin API, or --context with a name in \
                 `tower-quota contexts`"
                    .into(),
            )),
        }
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
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
