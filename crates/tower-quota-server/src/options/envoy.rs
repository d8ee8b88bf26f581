use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum};

use crate::envoy::EnvoyOptions;

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
    /// How the service answers.
    #[command(flatten)]
    pub answers: EnvoyOptions,
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
}
