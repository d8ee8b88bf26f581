use core::time::Duration;
use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum};

use super::values;

/// Flags of the counters.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Counters")]
#[non_exhaustive]
pub struct StoreFlags {
    /// The Redis with the counters, as a URL or as HOST:PORT. Without a Redis, the counters are in memory.
    #[arg(long, env = "REDIS_URL", value_name = "URL", hide_env_values = true)]
    pub redis: Option<String>,
    /// The password of Redis, or USER:PASSWORD, if the URL has no password.
    #[arg(
        long,
        env = "REDIS_AUTH",
        value_name = "PASSWORD",
        hide_env_values = true
    )]
    pub redis_auth: Option<String>,
    /// The kind of the Redis, if the URL is no URL: a host, PRIMARY,SENTINEL,SENTINEL or NODE,NODE.
    #[arg(long, env = "REDIS_TYPE", default_value = "SINGLE", ignore_case = true)]
    pub redis_type: RedisType,
    /// How to connect to Redis. The URL of a Unix socket is a path.
    #[arg(
        long,
        env = "REDIS_SOCKET_TYPE",
        default_value = "tcp",
        ignore_case = true
    )]
    pub redis_socket: SocketType,
    /// Connects to Redis by TLS.
    #[arg(long, env = "REDIS_TLS", value_parser = FalseyValueParser::new())]
    pub redis_tls: bool,
    /// The certificates of the authorities of Redis. By default the system's authorities may sign its certificate.
    #[arg(long, env = "REDIS_TLS_CACERT", value_name = "PATH")]
    pub redis_tls_ca: Option<PathBuf>,
    /// The certificate of the server for Redis.
    #[arg(
        long,
        env = "REDIS_TLS_CLIENT_CERT",
        value_name = "PATH",
        requires = "redis_tls_key"
    )]
    pub redis_tls_cert: Option<PathBuf>,
    /// The key of this certificate.
    #[arg(
        long,
        env = "REDIS_TLS_CLIENT_KEY",
        value_name = "PATH",
        requires = "redis_tls_cert"
    )]
    pub redis_tls_key: Option<PathBuf>,
    /// The beginning of all keys in Redis. Servers with the same prefix share counters.
    #[arg(
        long,
        env = "CACHE_KEY_PREFIX",
        value_name = "TEXT",
        default_value = "tower-quota-server"
    )]
    pub prefix: String,
    /// Fails the readiness while Redis does not answer. By default each limit chooses what to answer then.
    #[arg(long, env = "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", value_parser = FalseyValueParser::new())]
    pub ready_with_redis: bool,
    /// Decides busy keys in memory, by units that are charged in Redis for this long in advance, 500 ms by default. All
    /// servers of a Redis need the same time, such as --lease=200ms.
    #[arg(
        long,
        env = "TOWER_QUOTA_LEASE",
        value_name = "TIME",
        num_args = 0..=1,
        default_missing_value = "500ms",
        require_equals = true,
        value_parser = values::span
    )]
    pub lease: Option<Duration>,
    /// The longest time of a decision, below the 20 ms that Envoy waits for.
    #[arg(
        long,
        env = "TOWER_QUOTA_DEADLINE",
        value_name = "TIME",
        default_value = "15ms",
        value_parser = values::span
    )]
    pub deadline: Duration,
}

/// The kind of a Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum RedisType {
    /// A server.
    #[value(name = "SINGLE")]
    Single,
    /// The primary that sentinels know.
    #[value(name = "SENTINEL")]
    Sentinel,
    /// A cluster.
    #[value(name = "CLUSTER")]
    Cluster,
}

/// How to connect to a Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum SocketType {
    /// By TCP.
    Tcp,
    /// By TLS.
    Tls,
    /// By a Unix socket.
    Unix,
}

impl StoreFlags {
    /// Returns the URL of Redis, made of the variables of envoyproxy/ratelimit if it is no URL yet.
    #[must_use]
    pub fn redis_url(&self) -> Option<String> {
        let given = self.redis.as_ref()?;
        let auth = self.redis_auth.as_deref().map(in_url).unwrap_or_default();
        if let Some((scheme, rest)) = given.split_once("://") {
            return Some(match rest.contains('@') {
                true => given.clone(),
                false => format!("{scheme}://{auth}{rest}"),
            });
        }
        if self.redis_socket == SocketType::Unix || given.starts_with('/') {
            return Some(format!("redis+unix://{given}"));
        }
        let scheme = match self.redis_tls || self.redis_socket == SocketType::Tls {
            true => "rediss",
            false => "redis",
        };
        Some(match self.redis_type {
            RedisType::Single => format!("{scheme}://{auth}{given}"),
            RedisType::Cluster => format!("{scheme}+cluster://{auth}{given}"),
            RedisType::Sentinel => {
                let (primary, sentinels) = given.split_once(',').unwrap_or((given, ""));
                format!("{scheme}+sentinel://{sentinels}/{auth}{primary}")
            }
        })
    }
}

/// Returns a password, or a user and a password, in the form of a URL.
fn in_url(auth: &str) -> String {
    let (user, password) = auth.split_once(':').unwrap_or(("", auth));
    format!("{}:{}@", encoded(user), encoded(password))
}

fn encoded(part: &str) -> String {
    let mut text = String::new();
    for byte in part.bytes() {
        match byte.is_ascii_alphanumeric() {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}
