//! Variables of envoyproxy/ratelimit that this server does not have.

/// Variables that ask for something else than the server does, with a value that asks for the same, and the fix.
const ERRORS: [(&str, &str, &str); 5] = [
    (
        "BACKEND_TYPE",
        "redis",
        "counters are in Redis or in memory, so unset it",
    ),
    (
        "REDIS_PERSECOND",
        "",
        "all counters are in one Redis, which decides all limits of a call in one step, so unset it",
    ),
    (
        "GRPC_UDS",
        "",
        "gRPC is served by TCP, so unset it, and give GRPC_HOST and GRPC_PORT",
    ),
    (
        "GRPC_CLIENT_TLS_SAN",
        "",
        "every certificate of GRPC_CLIENT_TLS_CACERT may connect, so unset it, and give an authority for the gateway alone",
    ),
    (
        "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION",
        "",
        "the certificate of Redis is always checked, so unset it, and give REDIS_TLS_CACERT",
    ),
];

/// Variables without an effect. `docs/reference/server.md` says why.
const WITHOUT_EFFECT: [&str; 17] = [
    "USE_STATSD",
    "USE_DOG_STATSD",
    "PROMETHEUS_MAPPER_YAML",
    "EXTRA_TAGS",
    "DEBUG_HOST",
    "DEBUG_PORT",
    "LOCAL_CACHE_SIZE_IN_BYTES",
    "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT",
    "EXPIRATION_JITTER_MAX_SECONDS",
    "REDIS_POOL_SIZE",
    "REDIS_PIPELINE_WINDOW",
    "REDIS_PIPELINE_LIMIT",
    "REDIS_TIMEOUT",
    "TRACING_ENABLED",
    "MEMCACHE_HOST_PORT",
    "CONFIG_GRPC_XDS_NODE_METADATA",
    "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
];

/// Returns an error for each variable that asks for something else than the server does. The server does not start.
pub fn unsupported(variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut errors = Vec::new();
    for (name, same, fix) in ERRORS {
        let differs = |value: &String| !value.eq_ignore_ascii_case(same);
        if is_set(variable(name).filter(differs)) {
            errors.push(format!("{name} is not supported: {fix}"));
        }
    }
    errors
}

/// Returns the variables that are set and have no effect.
pub fn without_effect(variable: impl Fn(&str) -> Option<String>) -> Vec<&'static str> {
    let names = WITHOUT_EFFECT.into_iter();
    names.filter(|name| is_set(variable(name))).collect()
}

/// Returns whether a value means more than `false`.
fn is_set(value: Option<String>) -> bool {
    let value = value.unwrap_or_default().to_lowercase();
    !["", "0", "f", "false", "n", "no", "off"].contains(&value.as_str())
}
