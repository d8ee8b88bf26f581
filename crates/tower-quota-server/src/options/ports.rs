use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use clap::Args;

use super::values;

/// Flags of the ports and their bounds.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Ports")]
#[non_exhaustive]
pub struct PortFlags {
    /// The address and port for HTTP, in place of the host and the port.
    #[arg(long, env = "TOWER_QUOTA_HTTP", value_name = "ADDRESS", value_parser = values::address)]
    pub http: Option<SocketAddr>,
    /// The address for HTTP.
    #[arg(long, env = "HOST", default_value = "0.0.0.0", value_parser = values::host)]
    pub host: IpAddr,
    /// The port for HTTP.
    #[arg(long, env = "PORT", default_value = "8080")]
    pub port: u16,
    /// The address and port for gRPC, in place of the host and the port.
    #[arg(long, env = "TOWER_QUOTA_GRPC", value_name = "ADDRESS", value_parser = values::address)]
    pub grpc: Option<SocketAddr>,
    /// The address for gRPC.
    #[arg(long, env = "GRPC_HOST", default_value = "0.0.0.0", value_parser = values::host)]
    pub grpc_host: IpAddr,
    /// The port for gRPC.
    #[arg(long, env = "GRPC_PORT", default_value = "8081")]
    pub grpc_port: u16,
    /// The address and port for the admin API, its page and the metrics.
    #[arg(
        long,
        env = "TOWER_QUOTA_ADMIN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8082",
        value_parser = values::address
    )]
    pub admin: SocketAddr,
    /// A further address and port for the metrics alone, such as :9090.
    #[arg(long, env = "PROMETHEUS_ADDR", value_name = "ADDRESS", value_parser = values::address)]
    pub metrics: Option<SocketAddr>,
    /// The path of the metrics.
    #[arg(
        long,
        env = "PROMETHEUS_PATH",
        value_name = "PATH",
        default_value = "/metrics",
        value_parser = path
    )]
    pub metrics_path: String,
    /// The most connections for HTTP at the same time.
    #[arg(
        long,
        env = "TOWER_QUOTA_HTTP_CONNECTIONS",
        value_name = "NUMBER",
        default_value = "4096",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub http_connections: u32,
    /// The most connections for gRPC at the same time.
    #[arg(
        long,
        env = "TOWER_QUOTA_GRPC_CONNECTIONS",
        value_name = "NUMBER",
        default_value = "4096",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub grpc_connections: u32,
    /// The age at which a gRPC connection ends, so that clients find new servers.
    #[arg(
        long,
        env = "GRPC_MAX_CONNECTION_AGE",
        value_name = "TIME",
        default_value = "24h",
        value_parser = values::span
    )]
    pub grpc_age: Duration,
    /// The time for the running calls of such a connection.
    #[arg(
        long,
        env = "GRPC_MAX_CONNECTION_AGE_GRACE",
        value_name = "TIME",
        default_value = "1h",
        value_parser = values::delay
    )]
    pub grpc_age_grace: Duration,
    /// The time between a failing readiness and the end of the ports after SIGTERM, so that balancers notice.
    #[arg(
        long,
        env = "TOWER_QUOTA_DRAIN_DELAY",
        value_name = "TIME",
        default_value = "3s",
        value_parser = values::delay
    )]
    pub drain_delay: Duration,
    /// The longest time for running calls after that.
    #[arg(
        long,
        env = "TOWER_QUOTA_DRAIN",
        value_name = "TIME",
        default_value = "10s",
        value_parser = values::delay
    )]
    pub drain: Duration,
}

impl PortFlags {
    /// Returns the address for HTTP.
    #[must_use]
    pub fn http_address(&self) -> SocketAddr {
        let given = SocketAddr::new(self.host, self.port);
        self.http.unwrap_or(given)
    }

    /// Returns the address for gRPC.
    #[must_use]
    pub fn grpc_address(&self) -> SocketAddr {
        let given = SocketAddr::new(self.grpc_host, self.grpc_port);
        self.grpc.unwrap_or(given)
    }
}

fn path(text: &str) -> Result<String, String> {
    let pages = ["/", "/healthz", "/readyz", "/healthcheck"];
    if pages.contains(&text) || text.starts_with("/v1/") {
        return Err(
            "this is another page of the admin port: write a path, such as /metrics".into(),
        );
    }
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic())
        && !text.contains(['{', '}', '?', '#', '*'])
        && !text.contains("/:");
    match text.starts_with('/') && is_plain {
        true => Ok(text.to_owned()),
        false => Err("write a path, such as /metrics".into()),
    }
}
