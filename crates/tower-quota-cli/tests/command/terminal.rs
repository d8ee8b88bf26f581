//! The text screen in a real pseudo terminal.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::command::{Files, Ran, command};
use crate::service::{TOKEN, TestService};

#[test]
fn screen_is_drawn_and_left_in_a_terminal() {
    let service = TestService::start();
    let files = Files::new();
    let rules = files.write(
        "rules.yaml",
        "limits: [{ name: minute, quota: 1/minute, key: header x-api-key }]",
    );
    let put = command(&["put", &rules, "--admin", &service.admin])
        .env("TOWER_QUOTA_TOKEN", TOKEN)
        .output()
        .unwrap();
    Ran::of(put).expect(0);
    (0..4).for_each(|_| _ = service.ask("ann"));

    // `script` of util-linux gives the command a terminal.
    let line = format!(
        "stty rows 30 cols 100; exec {} top --show-keys --admin {}",
        env!("CARGO_BIN_EXE_tower-quota"),
        service.admin
    );
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .env("TOWER_QUOTA_TOKEN", TOKEN)
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut drawn, mut part) = (Vec::new(), [0; 4096]);
    // The screen ends the test's wait by what it draws; a command that ends early ends it too.
    while !String::from_utf8_lossy(&drawn).contains("q quit") {
        let length = screen.read(&mut part).unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&drawn));
        drawn.extend_from_slice(&part[..length]);
    }
    keys.write_all(b"q").unwrap();
    screen.read_to_end(&mut drawn).unwrap();
    assert!(child.wait().unwrap().success());
    let drawn = String::from_utf8_lossy(&drawn);
    for part in ["\u{1b}[?1049h", "healthy", "minute", "ann", "\u{1b}[?1049l"] {
        assert!(drawn.contains(part), "{part:?} is missing: {drawn:?}");
    }
}
