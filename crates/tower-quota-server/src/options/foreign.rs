//! Variables of envoyproxy/ratelimit that this server does not have.

/// The effect of a variable that this server does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Foreign {
    /// The server would do something else than the variable asks for, so it does not start.
    Error(String),
    /// The variable has no effect.
    Note(String),
}

/// When a variable matters.
enum When {
    Set,
    True,
    /// Any value but this.
    Not(&'static str),
}

use When::{Not, Set, True};

const ERRORS: [(&str, When, &str); 5] = [
    (
        "BACKEND_TYPE",
        Not("redis"),
        "counters are in Redis or in memory, so unset it",
    ),
    (
        "REDIS_PERSECOND",
        True,
        "all counters are in one Redis, which decides all limits of a call in one step, so unset it",
    ),
    (
        "GRPC_UDS",
        Set,
        "gRPC is served by TCP, so unset it, and give GRPC_HOST and GRPC_PORT",
    ),
    (
        "GRPC_CLIENT_TLS_SAN",
        Set,
        "every certificate of GRPC_CLIENT_TLS_CACERT may connect, so unset it, and give an authority for the gateway alone",
    ),
    (
        "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION",
        True,
        "the certificate of Redis is always checked, so unset it, and give REDIS_TLS_CACERT",
    ),
];

const NOTES: [(&str, When, &str); 17] = [
    (
        "USE_STATSD",
        True,
        "metrics are at /metrics of the admin port or of PROMETHEUS_ADDR",
    ),
    (
        "USE_DOG_STATSD",
        True,
        "metrics are at /metrics of the admin port or of PROMETHEUS_ADDR",
    ),
    (
        "PROMETHEUS_MAPPER_YAML",
        Set,
        "the names of the metrics are fixed",
    ),
    (
        "EXTRA_TAGS",
        Set,
        "add labels where Prometheus reads the metrics",
    ),
    (
        "DEBUG_HOST",
        Set,
        "the admin port replaces the debug port: give TOWER_QUOTA_ADMIN",
    ),
    (
        "DEBUG_PORT",
        Set,
        "the admin port replaces the debug port: give TOWER_QUOTA_ADMIN",
    ),
    (
        "LOCAL_CACHE_SIZE_IN_BYTES",
        Not("0"),
        "refusals are always remembered in memory",
    ),
    (
        "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT",
        True,
        "refused calls never count, unless a file has `compatible: true`",
    ),
    (
        "EXPIRATION_JITTER_MAX_SECONDS",
        Set,
        "each key has its own expiry",
    ),
    (
        "REDIS_POOL_SIZE",
        Set,
        "calls share a connection, in batches",
    ),
    (
        "REDIS_PIPELINE_WINDOW",
        Set,
        "calls are always sent in batches",
    ),
    (
        "REDIS_PIPELINE_LIMIT",
        Set,
        "calls are always sent in batches",
    ),
    (
        "REDIS_TIMEOUT",
        Set,
        "TOWER_QUOTA_DEADLINE is the longest time of a decision",
    ),
    (
        "TRACING_ENABLED",
        True,
        "the server logs, and sends no traces",
    ),
    (
        "MEMCACHE_HOST_PORT",
        Set,
        "counters are in Redis or in memory",
    ),
    (
        "CONFIG_GRPC_XDS_NODE_METADATA",
        Set,
        "the control plane gets the name of the node alone",
    ),
    (
        "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
        Set,
        "the control plane gets no further fields",
    ),
];

/// Returns the variables that this server does not have, if they are set.
pub fn foreign(variable: impl Fn(&str) -> Option<String>) -> Vec<Foreign> {
    let found = |(name, when, text): &(&str, When, &str)| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        let is_true =
            !["0", "f", "false", "n", "no", "off"].contains(&value.to_lowercase().as_str());
        let matters = match when {
            Set => true,
            True => is_true,
            Not(usual) => !value.eq_ignore_ascii_case(usual),
        };
        matters.then(|| format!("{name} is not supported: {text}"))
    };
    let errors = ERRORS.iter().filter_map(found).map(Foreign::Error);
    let notes = NOTES.iter().filter_map(found).map(Foreign::Note);
    errors.chain(notes).collect()
}
