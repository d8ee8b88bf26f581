//! The flags of the program, which are environment variables too.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Parser;
use clap::builder::FalseyValueParser;
use tower_quota_rules::DurationText;

use crate::envoy::{EnvoyOptions, HeaderNames};

/// Serves rate limits to Envoy and other gateways.
///
/// Reads the environment variables of envoyproxy/ratelimit where they mean the same.
#[derive(Clone, Debug, Parser)]
#[command(name = "tower-quota-server", version)]
#[non_exhaustive]
pub struct Options {
    /// The folder or file with the limits, in the YAML of envoyproxy/ratelimit.
    #[arg(long, env = "TOWER_QUOTA_ENVOY", value_name = "PATH")]
    pub envoy: Option<PathBuf>,
    /// Without `--envoy`, the root of the folder ROOT/SUBDIRECTORY/APPDIRECTORY with the limits.
    #[arg(long, env = "RUNTIME_ROOT", value_name = "FOLDER")]
    pub runtime_root: Option<PathBuf>,
    /// The subfolder of the root.
    #[arg(long, env = "RUNTIME_SUBDIRECTORY", value_name = "FOLDER")]
    pub runtime_subdirectory: Option<PathBuf>,
    /// The subfolder of the subfolder.
    #[arg(long, env = "RUNTIME_APPDIRECTORY", default_value = "config")]
    pub runtime_appdirectory: PathBuf,
    /// Allows a domain in several files.
    #[arg(long, env = "MERGE_DOMAIN_CONFIG", value_parser = FalseyValueParser::new())]
    pub merge_domains: bool,
    /// The Redis server with the counters, which may have a password in its URL. Without a server, the counters are in memory.
    #[arg(long, env = "REDIS_URL", value_name = "URL", hide_env_values = true)]
    pub redis: Option<String>,
    /// The address and port for gRPC, in place of the host and the port.
    #[arg(long, env = "TOWER_QUOTA_GRPC", value_name = "ADDRESS")]
    pub grpc: Option<SocketAddr>,
    /// The address for gRPC.
    #[arg(long, env = "GRPC_HOST", default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    pub grpc_host: IpAddr,
    /// The port for gRPC.
    #[arg(long, env = "GRPC_PORT", default_value_t = 8081)]
    pub grpc_port: u16,
    /// The longest time of a decision, below the 20 ms that Envoy waits for.
    #[arg(
        long,
        env = "TOWER_QUOTA_DEADLINE",
        value_name = "TIME",
        default_value = "15ms"
    )]
    pub deadline: DurationText,
    /// Lets every call pass, and still counts.
    #[arg(long, env = "SHADOW_MODE", value_parser = FalseyValueParser::new())]
    pub shadow: bool,
    /// Adds the tightest limit to responses as header fields.
    #[arg(long, env = "LIMIT_RESPONSE_HEADERS_ENABLED", value_parser = FalseyValueParser::new())]
    pub headers: bool,
    /// The field with the limit.
    #[arg(long, env = "LIMIT_LIMIT_HEADER", default_value = "RateLimit-Limit")]
    pub limit_header: String,
    /// The field with the remaining requests.
    #[arg(
        long,
        env = "LIMIT_REMAINING_HEADER",
        default_value = "RateLimit-Remaining"
    )]
    pub remaining_header: String,
    /// The field with the seconds until the reset.
    #[arg(long, env = "LIMIT_RESET_HEADER", default_value = "RateLimit-Reset")]
    pub reset_header: String,
    /// Adds the descriptors and the metadata of limits to responses.
    #[arg(long, env = "RESPONSE_DYNAMIC_METADATA", value_parser = FalseyValueParser::new())]
    pub dynamic_metadata: bool,
}

impl Options {
    /// Returns the folder of the limits, if there is one.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        if self.envoy.is_some() {
            return self.envoy.clone();
        }
        let mut folder = self.runtime_root.clone()?;
        folder.extend(&self.runtime_subdirectory);
        folder.push(&self.runtime_appdirectory);
        Some(folder)
    }

    /// Returns the address for gRPC.
    #[must_use]
    pub fn grpc_address(&self) -> SocketAddr {
        let given = SocketAddr::new(self.grpc_host, self.grpc_port);
        self.grpc.unwrap_or(given)
    }

    /// Returns the URL of the Redis server. envoyproxy/ratelimit takes a host and a port.
    #[must_use]
    pub fn redis_url(&self) -> Option<String> {
        let url = self.redis.as_ref()?;
        Some(match url.contains("://") {
            true => url.clone(),
            false => format!("redis://{url}"),
        })
    }

    /// Returns the settings of Envoy's service.
    #[must_use]
    pub fn envoy_options(&self) -> EnvoyOptions {
        let names = HeaderNames {
            limit: self.limit_header.clone(),
            remaining: self.remaining_header.clone(),
            reset: self.reset_header.clone(),
        };
        EnvoyOptions {
            deadline: self.deadline.into(),
            is_shadow: self.shadow,
            headers: self.headers.then_some(names),
            dynamic_metadata: self.dynamic_metadata,
            ..EnvoyOptions::default()
        }
    }
}
