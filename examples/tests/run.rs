//! Starts each example as a user would and does what it says to try.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "what a test calls may fail like a test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tollgate_testkit::RedisServer;

/// No example takes longer to say something; a test that hangs helps nobody.
const PATIENCE: Duration = Duration::from_secs(30);

struct Example {
    process: Child,
    lines: Receiver<String>,
    address: String,
}

impl Example {
    /// Starts an example on a free port and waits until it says where it listens.
    fn start(name: &str, settings: &[(&str, &str)]) -> Self {
        let mut process = Command::new(program(name))
            .env("PORT", "0")
            .envs(settings.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut example = Self { process, lines, address: String::new() };
        let listening = example.line();
        let rest = listening.strip_prefix("listening on http://").expect("the first line says where it listens");
        example.address = rest.split_whitespace().next().unwrap().to_owned();
        example
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("the example goes on talking")
    }

    /// Gets `/` over a connection of its own; the status and the whole answer in lower case.
    fn get(&self, header: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nhost: {}\r\n{header}connection: close\r\n\r\n", self.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer[9..12].parse().unwrap();
        (status, answer.to_lowercase())
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Cargo builds a package's examples before its tests, next to them.
fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples").join(name)
}

#[test]
fn quickstart_limits_a_client() {
    let example = Example::start("quickstart", &[]);
    let (status, answer) = example.get("");
    assert_eq!(status, 200);
    assert!(answer.contains("ratelimit-policy: \"burst\";q=5;w=3"), "{answer}");
    assert!(answer.contains("\r\nratelimit: \"burst\";r=4;t=1"), "{answer}");
    assert!(answer.ends_with("hello\n"), "{answer}");

    // Asked without a pause, even a slow machine is faster than 30 requests a minute.
    let (_, refused) = (0..1_000).map(|_| example.get("")).find(|(status, _)| *status == 429).expect("a refusal");
    assert!(refused.contains("content-type: application/problem+json"), "{refused}");
    assert!(refused.contains("\r\nretry-after: "), "{refused}");
    assert!(!refused.contains("\r\nretry-after: 0\r\n"), "{refused}");
}

#[test]
fn compose_decides_five_limits_at_once() {
    let example = Example::start("compose", &[]);
    let (status, answer) = example.get("");
    assert_eq!(status, 400, "{answer}");
    let (status, answer) = example.get("x-api-key: ann\r\n");
    assert_eq!(status, 200, "{answer}");
    for name in ["address", "second", "minute", "hour", "everyone"] {
        assert!(answer.contains(&format!("\"{name}\";q=")), "{name} is missing: {answer}");
        assert!(answer.contains(&format!("\"{name}\";r=")), "{name} is missing: {answer}");
    }
}

#[test]
fn redis_instances_share_a_budget() {
    let server = RedisServer::start();
    let url = server.url();
    let instances = [Example::start("redis", &[("REDIS_URL", &url)]), Example::start("redis", &[("REDIS_URL", &url)])];
    let left = |instance: &Example| -> u32 {
        let (_, answer) = instance.get("x-api-key: ann\r\n");
        let (_, day) = answer.split_once("\"day\";r=").expect("the day's standing is told");
        day.split(';').next().unwrap().parse().unwrap()
    };
    // The day may turn between two requests, but not twice.
    let shared = (0..2).any(|_| left(&instances[0]) == left(&instances[1]) + 1);
    assert!(shared, "each instance counts for itself");
}

#[test]
fn redis_says_what_is_missing() {
    let output =
        Command::new(program("redis")).env("REDIS_URL", "redis://127.0.0.1:1").stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("127.0.0.1:1") && said.contains("REDIS_URL"), "{said}");
}

#[test]
fn tiers_have_quotas_of_their_own() {
    let example = Example::start("tiers", &[]);
    for (header, told) in [
        ("", "\"strangers\";q=2;"),
        ("x-api-key: made-up\r\n", "\"strangers\";q=2;"),
        ("x-api-key: key-of-fay\r\n", "\"account\";q=3;"),
        ("x-api-key: key-of-pat\r\n", "\"account\";q=100;"),
        ("x-api-key: key-2-of-acme\r\n", "\"account\";q=20000;"),
    ] {
        let (status, answer) = example.get(header);
        assert!(status == 200 && answer.contains(told), "{answer}");
    }
    // Made-up keys buy nothing: asked without a pause, even a slow machine is faster than 2 requests a minute.
    let refused = (0..100).any(|i| example.get(&format!("x-api-key: made-up-{i}\r\n")).0 == 429);
    assert!(refused, "strangers share a counter");
}

#[test]
fn tonic_refuses_the_fourth_call() {
    let example = Example::start("tonic", &[]);
    let calls: Vec<String> = (0..5).map(|_| example.line()).collect();
    for served in &calls[..3] {
        assert!(served.contains("Serving"), "{calls:?}");
    }
    for refused in &calls[3..] {
        assert!(refused.contains("ResourceExhausted"), "{calls:?}");
        let (_, wait) = refused.rsplit_once("retry-after: ").unwrap();
        assert!((1..=20).contains(&wait.parse::<u32>().unwrap()), "{calls:?}");
    }
}
