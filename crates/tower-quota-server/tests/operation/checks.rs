//! `tower-quota-server check`.

use crate::support::{DOCUMENT, Files, limits, output, text};

#[test]
fn good_files_have_no_problems() {
    let files = Files::new();
    let (rules, shop) = (
        files.write("rules.yaml", DOCUMENT),
        files.write("shop.yaml", &limits("shop", 1)),
    );
    let flags = ["check", "--rules", text(&rules), "--envoy", text(&shop)];
    // A check keeps away from Redis.
    let output = output(&flags, &[("REDIS_URL", "redis://127.0.0.1:1")]);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "tower-quota-server: no problems\n"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn settings_without_effect_are_named() {
    let files = Files::new();
    let rules = files.write(
        "rules.yaml",
        "limits: [{ name: uploads, quota: 2 at once }]\n",
    );
    let flags = ["check", "--rules", text(&rules)];
    let output = output(&flags, &[("REDIS_POOL_SIZE", "10")]);
    let advice = String::from_utf8(output.stderr).unwrap();
    for part in ["REDIS_POOL_SIZE has no effect", "the limit \"uploads\""] {
        assert!(advice.contains(part), "{part}: {advice}");
    }
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn every_problem_is_named() {
    let files = Files::new();
    let rules = files.write("rules.yaml", "limits:\n  - { name: a, quota: 100/minit }\n");
    let shop = files.write("shop.yaml", "domain: shop\nlimits: []\n");
    let folder = files.path("");
    let flags = [
        "check",
        "--rules",
        text(&rules),
        "--envoy",
        text(&shop),
        "--redis",
        "redis://:port",
        "--grpc-tls-cert",
        text(&folder),
        "--grpc-tls-key",
        text(&folder),
        "--http-tls-key",
        text(&folder),
    ];
    let output = output(&flags, &[("BACKEND_TYPE", "memcache")]);
    let errors = String::from_utf8(output.stderr).unwrap();
    for part in [
        "BACKEND_TYPE is not supported",
        "shop.yaml:2:1: the key \"limits\" is unknown",
        "--redis (REDIS_URL): ",
        "100/minit",
        "--grpc-tls-cert, --grpc-tls-key",
        "TLS of the http port needs a certificate and its key: give --http-tls-cert",
    ] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
    assert_eq!(output.status.code(), Some(1));
}

#[cfg(unix)]
#[test]
fn pipe_in_place_of_a_key_is_a_problem() {
    use std::process::Command;

    let files = Files::new();
    let rules = files.write("rules.yaml", DOCUMENT);
    let pipe = files.path("pipe.pem");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    // A read of the pipe would wait for a writer.
    let mut check = Command::new("timeout");
    let check = check.args(["60", env!("CARGO_BIN_EXE_tower-quota-server"), "check"]);
    let tls = [
        "--grpc-tls-cert",
        text(&pipe),
        "--grpc-tls-key",
        text(&pipe),
    ];
    let check = check.args(["--rules", text(&rules)]).args(tls);
    let errors = String::from_utf8(check.output().unwrap().stderr).unwrap();
    assert!(errors.contains("pipe.pem: this is no file: "), "{errors}");
}

#[test]
fn bad_prefix_names_its_flag() {
    let files = Files::new();
    let rules = files.write("rules.yaml", DOCUMENT);
    let flags = [
        "check",
        "--rules",
        text(&rules),
        "--redis",
        "redis.internal",
    ];
    let output = output(&flags, &[("CACHE_KEY_PREFIX", "my shop")]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.contains("--prefix (CACHE_KEY_PREFIX): the key prefix \"my shop\""),
        "{errors}"
    );
}

#[test]
fn short_secret_is_a_problem() {
    let files = Files::new();
    let rules = files.write("rules.yaml", DOCUMENT);
    let flags = ["check", "--rules", text(&rules), "--admin-token", "short"];
    let output = output(&flags, &[]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.contains("--admin-token (TOWER_QUOTA_ADMIN_TOKEN)"),
        "{errors}"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn server_without_limits_names_the_flags() {
    let output = output(&[], &[]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.contains("give --rules PATH, --envoy PATH, or RUNTIME_ROOT"),
        "{errors}"
    );
    assert_eq!(output.status.code(), Some(1));
}
