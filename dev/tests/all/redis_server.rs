//! Tests of the server program that the environment names.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::env;
use std::process::Command;

use tower_quota_dev::RedisServer;

/// Starts a server in a process with an environment that names `program`, and returns the output.
fn start(program: &str) -> String {
    let mut process = Command::new(env::current_exe().unwrap());
    process
        .args([
            "--exact",
            "redis_server::named_server_answers",
            "--ignored",
            "--nocapture",
        ])
        .env("REDIS_SERVER", program);
    let output = process.output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn missing_server_is_named_in_the_panic() {
    let printed = start("/nowhere/valkey-server");
    assert!(
        printed.contains("/nowhere/valkey-server: No such file"),
        "{printed}"
    );
}

#[test]
fn exiting_program_is_named_with_last_line() {
    let printed = start("/bin/echo");
    assert!(printed.contains("/bin/echo: exited at start"), "{printed}");
}

#[test]
fn server_of_the_environment_starts() {
    let named = env::var("REDIS_SERVER").unwrap_or_default();
    let printed = start(&named);
    assert!(printed.contains("1 passed"), "{printed}");
}

#[test]
#[ignore = "is run by the tests above, in a process with another environment"]
fn named_server_answers() {
    assert_eq!(RedisServer::start().command("PING").unwrap(), "+PONG\r\n");
}
