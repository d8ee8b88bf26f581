//! Tests of connections to services: addresses, tokens and certificates.

use std::io::{Read, Write};

use tower_quota_dev::TlsFiles;

use crate::command::{Files, Ran, command, run};
use crate::service::{TOKEN, TestService};

#[test]
fn wrong_token_is_refused() {
    let service = TestService::start();
    let ask = |token: Option<&str>| {
        let mut command = command(&["history", "--admin", &service.admin]);
        Ran::of(
            command
                .envs(token.map(|token| ("TOWER_QUOTA_TOKEN", token)))
                .output()
                .unwrap(),
        )
    };
    let (missing, wrong) = (ask(None), ask(Some("another token of 32 bytes length")));
    assert!(
        missing.code == 1 && missing.error.contains("TOWER_QUOTA_TOKEN"),
        "{}",
        missing.error
    );
    assert!(
        wrong.code == 1
            && !wrong.error.contains("another token")
            && wrong.error.contains("does not accept the token"),
        "{}",
        wrong.error
    );
    let files = Files::new();
    let file = files.write("token", format!("{TOKEN}\n"));
    Ran::of(
        command(&["history", "--admin", &service.admin, "--token-file", &file])
            .output()
            .unwrap(),
    )
    .expect(0);
}

#[test]
fn address_without_http_is_a_usage_error() {
    for address in ["ftp://127.0.0.1", "127.0.0.1:9000"] {
        let ran = Ran::of(command(&["history", "--admin", address]).output().unwrap());
        assert!(
            ran.code == 2 && ran.error.contains("https://HOST:PORT"),
            "{}",
            ran.error
        );
    }
}

#[test]
fn admin_api_over_https_needs_its_authority() {
    let (service, files) = (TestService::start(), TlsFiles::new());
    let address = service.serve_tls(&files);
    let run = |arguments: &[&str]| {
        let mut command = command(&["history", "--admin", &address]);
        Ran::of(
            command
                .args(arguments)
                .env("TOWER_QUOTA_TOKEN", TOKEN)
                .output()
                .unwrap(),
        )
    };
    let path = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    run(&["--ca", &path(files.certificate())]).expect(0);

    // The system does not trust the certificate, and a different certificate does not match.
    let another = TlsFiles::new();
    for arguments in [vec![], vec!["--ca".to_owned(), path(another.certificate())]] {
        let ran = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(
            ran.code == 3 && ran.error.contains("is not trusted") && ran.error.contains("--ca"),
            "{}",
            ran.error
        );
    }
    for unusable in [path(files.key()), "/nowhere.pem".to_owned()] {
        let ran = run(&["--ca", &unusable]);
        assert!(
            ran.code == 2 && ran.error.contains(&unusable),
            "{}",
            ran.error
        );
    }
}

#[test]
fn unreachable_service_exits_with_three() {
    // The port was free a moment ago, so no server listens.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let target = format!("http://{address}");
    let ran = run(&["history", "--admin", &target, "--timeout", "1s"]);
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.error);
}

#[test]
fn port_of_a_service_is_no_admin_api() {
    let port = hello_port();
    for arguments in [&["show"][..], &["health"], &["top"]] {
        let mut command = command(arguments);
        let ran = Ran::of(command.env("TOWER_QUOTA_ADMIN", &port).output().unwrap());
        assert!(
            ran.code == 1 && ran.error.contains("admin API"),
            "{arguments:?} {}{}",
            ran.out,
            ran.error
        );
    }
}

/// Answers every connection with a text, and returns the address.
fn hello_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut start) = (client.unwrap(), [0; 1024]);
            let _ = client.read(&mut start);
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nhello\n";
            let _ = client.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}")
}
