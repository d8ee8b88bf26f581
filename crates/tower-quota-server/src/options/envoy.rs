use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum};

use super::values;
use crate::envoy::{EnvoyOptions, HeaderNames};

/// Flags of Envoy's protocol.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Limits of Envoy")]
#[non_exhaustive]
pub struct EnvoyFlags {
    /// The folder or file with the limits, in the YAML of envoyproxy/ratelimit.
    #[arg(long, env = "TOWER_QUOTA_ENVOY", value_name = "PATH")]
    pub envoy: Option<PathBuf>,
    /// Where the limits come from, if the server has no --envoy.
    #[arg(long, env = "CONFIG_TYPE", default_value = "FILE", ignore_case = true)]
    pub config_type: ConfigType,
    /// Without --envoy, the root of the folder ROOT/SUBDIRECTORY/APPDIRECTORY with the limits.
    #[arg(long, env = "RUNTIME_ROOT", value_name = "FOLDER")]
    pub runtime_root: Option<PathBuf>,
    /// The subfolder of the root.
    #[arg(long, env = "RUNTIME_SUBDIRECTORY", value_name = "FOLDER")]
    pub runtime_subdirectory: Option<PathBuf>,
    /// The subfolder of the subfolder.
    #[arg(
        long,
        env = "RUNTIME_APPDIRECTORY",
        value_name = "FOLDER",
        default_value = "config"
    )]
    pub runtime_appdirectory: PathBuf,
    /// Allows a domain in several files.
    #[arg(long, env = "MERGE_DOMAIN_CONFIG", value_parser = FalseyValueParser::new())]
    pub merge_domains: bool,
    /// Starts without limits if the files cannot be used yet. Calls pass until then, and the server is not ready.
    #[arg(long, env = "FORCE_START_WITHOUT_INITIAL_CONFIG", value_parser = FalseyValueParser::new())]
    pub start_without_limits: bool,
    /// Fails /healthcheck too until the first limits are loaded, and not only /readyz.
    #[arg(long, env = "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", value_parser = FalseyValueParser::new())]
    pub healthy_with_limits: bool,
    /// Lets every call pass, and still counts.
    #[arg(long, env = "SHADOW_MODE", value_parser = FalseyValueParser::new())]
    pub shadow: bool,
    /// Gives all limits the quota mode, so that a call is over only if all of its limits are exceeded.
    #[arg(long, env = "QUOTA_MODE", value_parser = FalseyValueParser::new())]
    pub quota: bool,
    /// The share of a limit from which the metric `near_limit` counts.
    #[arg(long, env = "NEAR_LIMIT_RATIO", value_name = "RATIO", default_value = "0.8", value_parser = values::percent)]
    pub near_limit: u64,
    /// Adds the tightest limit to responses as header fields.
    #[arg(long, env = "LIMIT_RESPONSE_HEADERS_ENABLED", value_parser = FalseyValueParser::new())]
    pub headers: bool,
    /// The field with the limit.
    #[arg(
        long,
        env = "LIMIT_LIMIT_HEADER",
        value_name = "FIELD",
        default_value = "RateLimit-Limit",
        value_parser = values::field
    )]
    pub limit_header: String,
    /// The field with the remaining requests.
    #[arg(
        long,
        env = "LIMIT_REMAINING_HEADER",
        value_name = "FIELD",
        default_value = "RateLimit-Remaining",
        value_parser = values::field
    )]
    pub remaining_header: String,
    /// The field with the seconds until the reset.
    #[arg(
        long,
        env = "LIMIT_RESET_HEADER",
        value_name = "FIELD",
        default_value = "RateLimit-Reset",
        value_parser = values::field
    )]
    pub reset_header: String,
    /// Adds the descriptors and the metadata of limits to responses.
    #[arg(long, env = "RESPONSE_DYNAMIC_METADATA", value_parser = FalseyValueParser::new())]
    pub dynamic_metadata: bool,
    /// The body of the responses that the gateway makes of refused calls.
    #[arg(
        long,
        env = "TOWER_QUOTA_REFUSAL_BODY",
        value_name = "TEXT",
        default_value = ""
    )]
    pub refusal_body: String,
}

/// Where the limits of Envoy come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum ConfigType {
    /// From files.
    #[value(name = "FILE")]
    File,
    /// From a control plane, such as Envoy Gateway, by xDS.
    #[value(name = "GRPC_XDS_SOTW")]
    GrpcXdsSotw,
}

impl EnvoyFlags {
    /// Returns the folder of the limits, if there is one.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        if self.envoy.is_some() {
            return self.envoy.clone();
        }
        if self.config_type != ConfigType::File {
            return None;
        }
        let mut folder = self.runtime_root.clone()?;
        folder.extend(&self.runtime_subdirectory);
        folder.push(&self.runtime_appdirectory);
        Some(folder)
    }

    /// Returns whether `/healthcheck` fails until the first limits are loaded. envoyproxy/ratelimit serves no port before it
    /// has the limits of a control plane.
    #[must_use]
    pub fn needs_limits(&self) -> bool {
        let is_xds = self.folder().is_none() && self.config_type == ConfigType::GrpcXdsSotw;
        self.healthy_with_limits || is_xds && !self.start_without_limits
    }

    pub(crate) fn options(&self) -> EnvoyOptions {
        let names = HeaderNames {
            limit: self.limit_header.clone(),
            remaining: self.remaining_header.clone(),
            reset: self.reset_header.clone(),
        };
        EnvoyOptions {
            is_shadow: self.shadow,
            is_quota: self.quota,
            near_limit_percent: self.near_limit,
            headers: self.headers.then_some(names),
            dynamic_metadata: self.dynamic_metadata,
            refusal_body: self.refusal_body.clone().into(),
            ..EnvoyOptions::default()
        }
    }
}
