//! The flags of the program, which are environment variables too.
//!
//! A variable that is set to an empty text counts as unset, as in envoyproxy/ratelimit.

mod envoy;
mod foreign;
mod logs;
mod ports;
mod rules;
mod store;
mod tls;
mod values;

use std::ffi::OsString;

use crate::envoy::XdsOptions;
use crate::http::HttpOptions;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, ValueEnum};

pub use self::envoy::{ConfigType, EnvoyFlags};
pub use self::foreign::{unsupported, without_effect};
pub use self::logs::{LogFlags, LogFormat};
pub use self::ports::PortFlags;
pub use self::rules::RulesFlags;
pub use self::store::{RedisType, SocketType, StoreFlags};
pub use self::tls::{TlsFiles, TlsFlags};

/// Serves rate limits to Envoy, nginx, Caddy, and services in any language.
///
/// Give your limits as a document (--rules), in the YAML of envoyproxy/ratelimit (--envoy), or both. Counters are in memory,
/// or in Redis with --redis. Every flag is an environment variable too. The server reads the variables of envoyproxy/ratelimit
/// where they mean the same.
#[derive(Clone, Debug, Parser)]
#[command(name = "tower-quota-server", version)]
#[non_exhaustive]
pub struct Options {
    /// What to do. Without a command, the server serves until SIGTERM.
    pub command: Option<Command>,
    /// Flags of documents and of the admin API.
    #[command(flatten)]
    pub rules: RulesFlags,
    /// Flags of the HTTP doors.
    #[command(flatten, next_help_heading = "HTTP")]
    pub http: HttpOptions,
    /// Flags of Envoy's protocol.
    #[command(flatten)]
    pub envoy: EnvoyFlags,
    /// Flags of a control plane.
    #[command(flatten, next_help_heading = "Limits by xDS")]
    pub xds: XdsOptions,
    /// Flags of the counters.
    #[command(flatten)]
    pub store: StoreFlags,
    /// Flags of the ports and their bounds.
    #[command(flatten)]
    pub ports: PortFlags,
    /// Flags of certificates.
    #[command(flatten)]
    pub tls: TlsFlags,
    /// Flags of logs.
    #[command(flatten)]
    pub logs: LogFlags,
}

/// A command in place of serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum Command {
    /// Checks all that the server would load, prints the problems, and exits with 1 if there are some.
    Check,
}

impl Options {
    /// Reads arguments, the first of which is the name of the program, and environment variables.
    ///
    /// # Errors
    /// Returns the flag that cannot be used, or the text of `--help`.
    pub fn read<T: Into<OsString> + Clone>(
        arguments: impl IntoIterator<Item = T>,
    ) -> Result<Self, clap::Error> {
        let command = Self::command().mut_args(|argument| {
            let value = argument.get_env().and_then(std::env::var_os);
            match value.is_some_and(|value| value.is_empty()) {
                true => argument.env(None::<&str>),
                false => argument,
            }
        });
        let matches = command.clone().try_get_matches_from(arguments);
        Self::from_arg_matches(&matches.map_err(|error| with_variable(error, &command))?)
    }
}

/// Adds the variable to an error, because the wrong value may come from there.
fn with_variable(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let flag = shown.split([' ', '=', '[']).next().unwrap_or_default();
    let flag = flag.trim_start_matches('-');
    let mut arguments = command.get_arguments();
    let variable = arguments
        .find(|argument| argument.get_long() == Some(flag))
        .and_then(clap::Arg::get_env);
    if let Some(variable) = variable {
        let named = format!("{shown}' or the variable '{}", variable.display());
        error.insert(ContextKind::InvalidArg, ContextValue::String(named));
    }
    error
}
