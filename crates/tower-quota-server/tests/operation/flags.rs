//! Flags and environment variables, those of envoyproxy/ratelimit included.

use tower_quota_server::options::{Options, unsupported, without_effect};

use crate::support::{DOCUMENT, Files, Server, output, text};

fn read(flags: &[&str]) -> Result<Options, clap::Error> {
    Options::read([&["tower-quota-server"], flags].concat())
}

#[test]
fn redis_of_the_reference_is_a_url() {
    for (flags, url) in [
        (
            &["--redis", "redis.internal:6379"][..],
            "redis://redis.internal:6379",
        ),
        (
            &["--redis", "rediss://redis.internal"],
            "rediss://redis.internal",
        ),
        (&["--redis", "h:1", "--redis-tls"], "rediss://h:1"),
        (&["--redis", "h:1", "--redis-socket", "tls"], "rediss://h:1"),
        (
            &["--redis", "h:1", "--redis-auth", "se@cret"],
            "redis://:se%40cret@h:1",
        ),
        (
            &["--redis", "h:1", "--redis-auth", "ann:pw"],
            "redis://ann:pw@h:1",
        ),
        (
            &["--redis", "redis://h:1", "--redis-auth", "pw"],
            "redis://:pw@h:1",
        ),
        (
            &["--redis", "redis://:own@h:1", "--redis-auth", "pw"],
            "redis://:own@h:1",
        ),
        (
            &["--redis", "/run/redis.sock"],
            "redis+unix:///run/redis.sock",
        ),
        (
            &["--redis", "/run/redis.sock", "--redis-socket", "UNIX"],
            "redis+unix:///run/redis.sock",
        ),
        (
            &[
                "--redis",
                "h:1,h:2",
                "--redis-type",
                "cluster",
                "--redis-auth",
                "pw",
            ],
            "redis+cluster://:pw@h:1,h:2",
        ),
        (
            &[
                "--redis",
                "main,h:1,h:2",
                "--redis-type",
                "SENTINEL",
                "--redis-auth",
                "pw",
            ],
            "redis+sentinel://h:1,h:2/:pw@main",
        ),
    ] {
        let options = read(flags).unwrap();
        assert_eq!(options.store.redis_url().unwrap(), url, "{flags:?}");
    }
    assert_eq!(read(&[]).unwrap().store.redis_url(), None);
}

#[test]
fn bad_value_names_the_flag_and_the_fix() {
    for (flags, fix) in [
        (["--port", "70000"], "70000 is not in 0..=65535"),
        (
            ["--host", "localhost"],
            "write an IP address, such as 127.0.0.1",
        ),
        (["--admin", "8082"], "write an IP address and a port"),
        (["--metrics", ":x"], "write an IP address and a port"),
        (["--deadline", "15"], "give integers with units"),
        (["--deadline", "0s"], "write a time of at least 1ms"),
        (["--drain", "soon"], "give integers with units"),
        (["--near-limit", "80"], "write a number from 0 to 1"),
        (
            ["--limit-header", "Rate Limit"],
            "write the name of a field, such as RateLimit-Limit",
        ),
        (["--remaining-header", ""], "write the name of a field"),
        (["--reset-header", "Reset:"], "write the name of a field"),
        (
            ["--token", "short-secret"],
            "the secret has 12 bytes: take 16 or more",
        ),
        (
            ["--token", "two-lines-of-a\nsecret"],
            "the secret has a control character: ",
        ),
        (
            ["--admin-token", "two-lines-of-a\nsecret"],
            "the secret has a control character: ",
        ),
        (["--http-connections", "0"], "0 is not in 1.."),
        (
            ["--log-level", "x=y=z"],
            "write error, warn, info, debug or trace",
        ),
        (
            ["--log-level", "loud"],
            "\"loud\" is not a level: write error",
        ),
        (["--log-level", "tower_quota=warn,loud"], "is not a level"),
        (["--config-type", "XDS"], "FILE, GRPC_XDS_SOTW"),
        (["--redis-type", "many"], "SINGLE, SENTINEL, CLUSTER"),
        (
            ["--metrics-path", "metrics"],
            "write a path, such as /metrics",
        ),
        (["--metrics-path", "/:x"], "write a path, such as /metrics"),
        (["--metrics-path", "/"], "another page of the admin port"),
        (
            ["--metrics-path", "/readyz"],
            "another page of the admin port",
        ),
        (
            ["--metrics-path", "/v1/rules"],
            "another page of the admin port",
        ),
    ] {
        let error = read(&flags).unwrap_err().to_string();
        assert!(error.contains(flags[0]) && error.contains(fix), "{error}");
    }
    let error = read(&["--grpc-age", "5"]).unwrap_err().to_string();
    assert!(
        error.contains("or the variable 'GRPC_MAX_CONNECTION_AGE': "),
        "{error}"
    );
    for (flag, other) in [
        ("--redis-tls-cert", "--redis-tls-key"),
        ("--redis-tls-key", "--redis-tls-cert"),
    ] {
        let error = read(&[flag, "a.pem"]).unwrap_err().to_string();
        assert!(error.contains(other), "{error}");
    }
}

#[test]
fn certificates_belong_together() {
    let tls = |flags: &[&str]| read(flags).unwrap().tls.files("grpc");
    assert_eq!(tls(&[]), Ok(None));
    let both = ["--grpc-tls-cert", "c", "--grpc-tls-key", "k"];
    assert_eq!(tls(&both).unwrap().unwrap().client_ca, None);
    assert_eq!(tls(&[&both[..], &["--grpc-tls=false"]].concat()), Ok(None));
    let ca = tls(&[&both[..], &["--grpc-tls-ca-cert", "a"]].concat());
    assert_eq!(ca.unwrap().unwrap().client_ca.unwrap().to_str(), Some("a"));
    for flags in [
        &["--grpc-tls"][..],
        &["--grpc-tls-cert", "c"],
        &["--grpc-tls-key", "k"],
        &["--grpc-tls-client-ca", "a"],
    ] {
        let error = tls(flags).unwrap_err();
        let fix = "give --grpc-tls-cert and --grpc-tls-key";
        assert!(error.contains(fix), "{error}");
    }
}

#[test]
fn variables_that_change_the_meaning_are_errors() {
    let set = |name: &'static str, value: &'static str| {
        move |asked: &str| (asked == name).then(|| value.to_owned())
    };
    for (name, value) in [
        ("BACKEND_TYPE", "memcache"),
        ("REDIS_PERSECOND", "true"),
        ("GRPC_UDS", "/tmp/ratelimit.sock"),
        ("GRPC_CLIENT_TLS_SAN", "envoy"),
        ("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", "1"),
    ] {
        let found = unsupported(set(name, value));
        assert!(
            matches!(&found[..], [message] if message.contains(name)),
            "{found:?}"
        );
    }
    for (name, value) in [
        ("BACKEND_TYPE", "redis"),
        ("REDIS_PERSECOND", "false"),
        ("USE_STATSD", "false"),
        ("LOCAL_CACHE_SIZE_IN_BYTES", "0"),
        ("GRPC_UDS", ""),
        ("USE_PROMETHEUS", "true"),
    ] {
        assert!(unsupported(set(name, value)).is_empty(), "{name}");
        assert!(without_effect(set(name, value)).is_empty(), "{name}");
    }
    for name in [
        "USE_STATSD",
        "TRACING_ENABLED",
        "DEBUG_PORT",
        "REDIS_POOL_SIZE",
    ] {
        assert_eq!(without_effect(set(name, "1")), [name]);
    }
}

#[test]
fn empty_variable_counts_as_unset() {
    let empty = [
        "PORT",
        "REDIS_URL",
        "REDIS_TYPE",
        "PROMETHEUS_ADDR",
        "LOG_LEVEL",
        "GRPC_SERVER_USE_TLS",
    ];
    let empty = empty.map(|name| (name, ""));
    let output = output(&["check", "--rules", "nowhere.yaml"], &empty);
    let error = String::from_utf8(output.stderr).unwrap();
    let reason =
        "tower-quota-server: --rules (TOWER_QUOTA_RULES): file nowhere.yaml is unavailable: ";
    assert!(error.starts_with(reason), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn logs_may_be_json() {
    let files = Files::new();
    let rules = files.write("rules.yaml", DOCUMENT);
    let variables = [
        ("LOG_FORMAT", "json"),
        ("LOG_LEVEL", "WARNING,tower_quota_server=info"),
    ];
    let server = Server::start_with(&["--rules", text(&rules)], &variables);
    let line: serde_json::Value = serde_json::from_str(&server.line).unwrap();
    assert_eq!(line["level"], "INFO");
    let message = line["message"].as_str().unwrap();
    assert!(message.ends_with(", counted in memory"), "{message}");
}

#[test]
fn page_names_every_variable_of_the_reference() {
    let page = include_str!("../../../../docs/reference/server.md");
    let command = <Options as clap::CommandFactory>::command();
    let read = command
        .get_arguments()
        .filter_map(|argument| argument.get_env());
    let mut names: Vec<String> = read.map(|name| name.to_str().unwrap().to_owned()).collect();
    names.retain(|name| !name.starts_with("TOWER_QUOTA_"));
    let set = |_: &str| Some("1".to_owned());
    names.extend(without_effect(set).into_iter().map(str::to_owned));
    for message in unsupported(set) {
        names.push(message.split(' ').next().unwrap().to_owned());
    }
    assert!(names.len() > 50, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn help_names_every_variable_and_no_secret() {
    let secrets = [
        ("REDIS_URL", "redis://:secret@redis.internal"),
        ("REDIS_AUTH", "secret"),
        ("TOWER_QUOTA_ADMIN_TOKEN", "secret"),
    ];
    let help = String::from_utf8(output(&["--help"], &secrets).stdout).unwrap();
    assert!(
        !help.contains("secret@") && !help.contains("=secret"),
        "{help}"
    );
    let command = <Options as clap::CommandFactory>::command();
    for argument in command.get_arguments() {
        let Some(name) = argument.get_long().filter(|_| !argument.is_hide_set()) else {
            continue;
        };
        let variable = argument.get_env().map(|name| name.to_str().unwrap());
        assert!(
            variable.is_some_and(|variable| help.contains(&format!("[env: {variable}"))),
            "--{name} has no variable in the help"
        );
    }
}
