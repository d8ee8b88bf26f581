//! Tests of the gateway and of changes to the rules while requests run.

use std::time::Instant;

use tower_quota_dev::RedisServer;

use crate::example::{Example, Request, TIMEOUT, get, request};

const TOKEN: &str = "the-token-of-the-tests";
const RULES: &str = "limits: [{ name: minute, quota: 2/minute, key: header x-api-key }]";

/// Starts the example on free ports, and returns the example and the address of the admin port.
fn start(rules: &str) -> (Example, String) {
    let example = Example::start(
        "gateway",
        &[
            ("ADMIN_PORT", "0"),
            ("ADMIN_TOKEN", TOKEN),
            ("RULES", rules),
        ],
    );
    let admin = example
        .line()
        .strip_prefix("admin on http://")
        .unwrap()
        .to_owned();
    (example, admin)
}

fn put(rules: &str, precondition: &str) -> Request {
    request("PUT", "/v1/rules")
        .header(&format!("authorization: Bearer {TOKEN}"))
        .header("content-type: application/yaml")
        .header(precondition)
        .body(rules)
}

fn ann() -> Request {
    get("/").header("x-api-key: ann")
}

/// Asks gateways in turn for one client, and returns the statuses of the answers.
///
/// While Redis takes too long, a gateway admits a request, and its answer says so. Redis may have counted the request, so the
/// later answers to this client are not certain. The next client starts without any counts.
fn counted_statuses<const N: usize>(gateways: [&Example; N]) -> [u16; N] {
    let end = Instant::now() + TIMEOUT;
    'clients: for i in 0.. {
        assert!(Instant::now() < end, "Redis answers in time");
        let client = get("/").header(&format!("x-api-key: client {i}"));
        let mut statuses = [0; N];
        for (gateway, counted) in gateways.iter().zip(&mut statuses) {
            let (status, answer) = gateway.ask(&client);
            if answer.contains("degraded") {
                continue 'clients;
            }
            *counted = status;
        }
        return statuses;
    }
    unreachable!()
}

#[test]
fn gateway_follows_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.yaml");
    std::fs::write(&path, RULES).unwrap();
    let (example, admin) = start(path.to_str().unwrap());
    example.expect(&ann(), 200, &["\"minute\";q=2"]);

    let stricter = RULES.replace("2/", "3/");
    let (status, answer) = put(&stricter, "if-match: *").send(&admin);
    assert!(status == 403 && answer.contains("rules.yaml"), "{answer}");
    std::fs::write(&path, stricter).unwrap();
    example.until(|_| ann(), |_, answer| answer.contains("\"minute\";q=3"));
    assert_eq!(get("/v1/rules").send(&admin).0, 401);
}

#[test]
fn gateways_share_counters_and_keep_a_copy() {
    let (redis, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let (rules, copy) = (
        folder.path().join("rules.yaml"),
        folder.path().join("copy.json"),
    );
    std::fs::write(&rules, RULES).unwrap();
    let url = redis.url();
    let settings = [
        ("REDIS_URL", url.as_str()),
        ("RULES", rules.to_str().unwrap()),
        ("LOCAL_COPY", copy.to_str().unwrap()),
        ("HOST", "0.0.0.0"),
        ("ADMIN_PORT", "0"),
        ("ADMIN_TOKEN", TOKEN),
    ];
    let (one, other) = (
        Example::start("gateway", &settings),
        Example::start("gateway", &settings),
    );
    let admin = one.line();
    let admin = admin.strip_prefix("admin on http://").unwrap();
    assert_eq!(counted_statuses([&one, &other, &one]), [200, 200, 429]);
    assert!(copy.exists());

    let (status, metrics) = get("/metrics").send(admin);
    assert_eq!(status, 200);
    for series in [
        "tower_quota_requests_total{route=\"none\",outcome=\"limited\"} 1\n",
        "tower_quota_redis_partitions{store=\"redis\",breaker=\"open\"} 0\n",
        "tower_quota_rules_version 1\n",
    ] {
        assert!(metrics.contains(series), "{series} in {metrics}");
    }
}

fn change(method: &str, path: &str, body: &str) -> Request {
    request(method, path)
        .header(&format!("authorization: Bearer {TOKEN}"))
        .header("content-type: application/json")
        .body(body)
}

#[test]
fn block_on_one_gateway_outlives_restart() {
    let (redis, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let rules = folder.path().join("rules.yaml");
    std::fs::write(&rules, RULES).unwrap();
    let url = redis.url();
    let settings = [
        ("REDIS_URL", url.as_str()),
        ("RULES", rules.to_str().unwrap()),
        ("ADMIN_PORT", "0"),
        ("ADMIN_TOKEN", TOKEN),
    ];
    let start = || {
        let gateway = Example::start("gateway", &settings);
        let admin = gateway.line();
        let admin = admin.strip_prefix("admin on http://").unwrap().to_owned();
        (gateway, admin)
    };
    let ((one, admin), (other, _)) = (start(), start());
    let block = r#"{ "target": "ann", "seconds": 3600, "reason": "a stolen key" }"#;
    let (status, answer) = change("PUT", "/v1/blocks", block).send(&admin);
    assert!(
        status == 200 && answer.contains(r#""reach":"all instances""#),
        "{answer}"
    );
    let quota = r#"{ "limit": "minute", "key": "bob", "quota": "7/minute", "for": "1h" }"#;
    let (status, answer) = change("PUT", "/v1/overrides", quota).send(&admin);
    assert_eq!(status, 200, "{answer}");
    let bob = || get("/").header("x-api-key: bob");
    let is_followed = |gateway: &Example| {
        gateway.until(|_| ann(), |status, _| status == 403);
        gateway.until(|_| bob(), |_, answer| answer.contains("\"minute\";q=7"));
    };
    is_followed(&one);
    is_followed(&other);
    drop((one, other));
    let (restarted, admin) = start();
    is_followed(&restarted);
    let (_, audit) = change("GET", "/v1/audit", "").send(&admin);
    assert!(audit.contains("a stolen key"), "{audit}");
}

#[test]
fn start_without_a_secret_names_the_fix() {
    let output = std::process::Command::new(crate::example::program("gateway"))
        .env("ADMIN_TOKEN", "short")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(
        text.contains("error: ") && text.contains("5 bytes") && !text.contains("ShortToken"),
        "{text}"
    );
}

#[test]
fn gateways_share_rules_and_counters() {
    let redis = RedisServer::start();
    let (one, admin) = start(&redis.url());
    let (other, _other_admin) = start(&redis.url());
    let (status, answer) = put(RULES, "if-none-match: *").send(&admin);
    assert_eq!(status, 200, "{answer}");
    // Until the gateways have the rules, the limits of the example's file hold.
    for gateway in [&one, &other] {
        gateway.until(|_| ann(), |_, answer| answer.contains("\"minute\""));
    }
    assert_eq!(counted_statuses([&one, &other, &one]), [200, 200, 429]);
}

#[cfg(target_os = "linux")]
#[test]
fn slow_admin_clients_leave_the_gateway_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.yaml");
    std::fs::write(&path, RULES).unwrap();
    let (example, admin) = start(path.to_str().unwrap());
    example.bounds_slow_clients(&admin, &get("/v1/ready"));
}

#[test]
fn readme_changes_limits_of_a_running_gateway() {
    let readme = include_str!("../../gateway/README.md");
    let sections: Vec<&str> = readme.split("```sh\n").collect();
    let commands = |section: usize| sections[section].split("```").next().unwrap();
    assert!(commands(1).contains("--example gateway"), "{}", commands(1));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.yaml");
    std::fs::write(&path, include_str!("../../gateway/rules.yaml")).unwrap();
    let path = path.to_str().unwrap();
    let (example, admin) = start(path);
    let run = |commands: &str| {
        let commands = commands
            .replace("examples/gateway/rules.yaml", path)
            .replace("127.0.0.1:3000", &example.address);
        let shell = std::process::Command::new("sh")
            .args(["-ec", &commands])
            .output()
            .unwrap();
        assert!(shell.status.success(), "{shell:?}");
        String::from_utf8(shell.stdout).unwrap()
    };
    let free = |_| get("/").header("x-api-key: free_1");
    let quota = "\"second\";q=2000";
    assert!(!run(commands(3)).contains(quota));
    run(commands(2));
    example.until(free, |_, answer| answer.contains(quota));
    assert!(run(commands(3)).contains(quota));
    let (_, versions) = change("GET", "/v1/rules/diff?from=1", "").send(&admin);
    assert!(versions.contains("1000/second burst 2000"), "{versions}");
    let (_, audit) = change("GET", "/v1/audit", "").send(&admin);
    assert!(audit.contains("version 2"), "{audit}");
}

#[test]
fn gateway_logs_refusals_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (rules, log) = (folder.path().join("rules.yaml"), folder.path().join("log"));
    std::fs::write(&rules, RULES).unwrap();
    let refused = |setting: Option<(&str, &str)>| {
        let mut command = std::process::Command::new(crate::example::program("gateway"));
        command.env("RULES", &rules).envs(setting);
        command.envs([("ADMIN_PORT", "0"), ("ADMIN_TOKEN", TOKEN)]);
        command.stderr(std::fs::File::create(&log).unwrap());
        let gateway = Example::start_by(&mut command);
        gateway.until(|_| ann(), |status, _| status == 429);
        std::fs::read_to_string(&log).unwrap()
    };
    let logged = refused(Some(("LOG_REFUSALS", "1")));
    assert_eq!(
        logged.matches("tower_quota::decision").count(),
        1,
        "{logged}"
    );
    assert!(!logged.contains("ann"), "{logged}");
    assert!(!refused(None).contains("tower_quota::decision"));
}

#[test]
fn gateway_reads_tokens_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    std::fs::write(&path, format!("dash:read:{TOKEN}\n")).unwrap();
    let settings = [
        ("ADMIN_PORT", "0"),
        ("ADMIN_TOKENS", path.to_str().unwrap()),
    ];
    let example = Example::start("gateway", &settings);
    let admin = example.line();
    let admin = admin.strip_prefix("admin on http://").unwrap();
    assert_eq!(put(RULES, "if-match: *").send(admin).0, 403);
    std::fs::write(&path, format!("ann:rules:{TOKEN}-of-ann\n")).unwrap();
    assert_eq!(put(RULES, "if-match: *").send(admin).0, 401);
}
