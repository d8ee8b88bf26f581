//! Tests of commands in a pseudo terminal and in a pipe.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::command::{Files, Ran, command};
use crate::service::{TOKEN, TestService};

/// Starts a service, and sends requests until a client is refused.
fn limited_service() -> TestService {
    let service = TestService::start();
    let rules = "defaults: { key: header x-api-key }\n\
                 limits: [{ name: minute, quota: 1/minute }, { name: hour, quota: 9/hour }]";
    let put = command(&["put", &Files::new().write("rules.yaml", rules), "--admin"])
        .arg(&service.admin)
        .env("TOWER_QUOTA_TOKEN", TOKEN)
        .output()
        .unwrap();
    Ran::of(put).expect(0);
    (0..4).for_each(|_| _ = service.ask("ann"));
    service
}

/// Runs a command until the output contains a text `times` times, and returns the output.
fn printed(command: &mut Command, text: &str, times: usize) -> String {
    let mut child = command
        .env("TOWER_QUOTA_TOKEN", TOKEN)
        .env("TERM", "xterm-256color")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let (mut printed, mut part) = (String::new(), [0; 4096]);
    while printed.matches(text).count() < times {
        let length = out.read(&mut part).unwrap();
        assert!(length > 0, "the command has ended: {printed}");
        printed.push_str(&String::from_utf8_lossy(&part[..length]));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    printed
}

#[test]
fn watched_list_is_printed_again() {
    let service = limited_service();
    let mut top = command(&["top", "--watch", "--show-keys", "--admin", &service.admin]);
    let printed = printed(&mut top, "ann", 2);
    assert!(!printed.contains('\u{1b}'), "{printed:?}");
}

#[test]
fn put_asks_in_a_terminal() {
    let service = limited_service();
    let files = Files::new();
    let rules = "defaults: { key: header x-api-key }\nlimits: [{ name: minute, quota: 2/minute }]";
    let line = format!(
        "{} put {} --admin {}",
        env!("CARGO_BIN_EXE_tower-quota"),
        files.write("rules.yaml", rules),
        service.admin
    );
    for (answer, result, code) in [
        ("n", "error: not put", 1),
        ("y", "version 2 is in force", 0),
    ] {
        let mut script = Command::new("script")
            .args(["--quiet", "--return", "--command", &line, "/dev/null"])
            .env("TOWER_QUOTA_TOKEN", TOKEN)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut keys = script.stdin.take().unwrap();
        writeln!(keys, "{answer}").unwrap();
        let ran = script.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&ran.stdout);
        for part in [
            "1/minute -> 2/minute",
            "limits gone: hour",
            "Put these rules? [y/N]",
            result,
        ] {
            assert_eq!(printed.matches(part).count(), 1, "{part}: {printed}");
        }
        assert_eq!(ran.status.code(), Some(code));
    }
}
