//! The server as a process, and clients over sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use tonic::transport::Channel;
use tower_quota_server::messages::descriptors::RateLimitDescriptor;
use tower_quota_server::messages::descriptors::rate_limit_descriptor::Entry;
use tower_quota_server::messages::ratelimit::RateLimitRequest;
use tower_quota_server::messages::ratelimit::rate_limit_service_client::RateLimitServiceClient;

pub(crate) const DOCUMENT: &str = "limits:\n  - { name: minute, quota: 100/minute }\n";
pub(crate) const TOKEN: &str = "a-token-of-the-tests";

/// A server process, which is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) line: String,
}

/// Files of a test.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Renames a whole file, because a server that reads a file while it is written sees a part of the text.
        let new = self.path(".new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, &path).unwrap();
        path
    }
}

pub(crate) fn limits(domain: &str, requests: u32) -> String {
    format!(
        "domain: {domain}\ndescriptors: [{{key: user, rate_limit: {{unit: hour, requests_per_unit: {requests}}}}}]\n"
    )
}

/// Returns the program without the environment of the tests.
pub(crate) fn program(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tower-quota-server"));
    command.env_clear().args(flags);
    command
}

/// Returns the program with a maximum number of open files.
pub(crate) fn program_with_files(most: u32) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -n {most} && exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_tower-quota-server")]);
    command
}

pub(crate) fn output(flags: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = program(flags);
    command.envs(variables.iter().copied()).output().unwrap()
}

impl Server {
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_with(flags, &[])
    }

    /// Starts a server on free ports, and waits for its first line.
    pub(crate) fn start_with(flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = program(&[]);
        Self::spawn(command.args(flags).envs(variables.iter().copied()))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let ports = ["--http", "--grpc", "--admin"].map(|flag| [flag, "127.0.0.1:0"]);
        let command = command.args(ports.as_flattened());
        let child = command.stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains(" serves gRPC on ") {
            let earlier = core::mem::take(&mut line);
            assert!(log.read_line(&mut line).unwrap() > 0, "no start: {earlier}");
        }
        thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { child, line }
    }

    fn address(&self, what: &str) -> SocketAddr {
        let (_, rest) = self.line.split_once(what).unwrap();
        rest.split([',', '\n']).next().unwrap().parse().unwrap()
    }

    pub(crate) fn http(&self) -> SocketAddr {
        self.address("HTTP on ")
    }

    pub(crate) fn grpc(&self) -> SocketAddr {
        self.address("gRPC on ")
    }

    pub(crate) fn admin(&self) -> SocketAddr {
        let what = [
            "the admin API and metrics on ",
            "metrics without an admin API on ",
        ];
        let what = what.into_iter().find(|what| self.line.contains(what));
        self.address(what.unwrap())
    }

    /// Returns the most memory that the process has had, in KiB.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak.unwrap()
            .trim()
            .trim_end_matches(" kB")
            .parse()
            .unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        let process = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &process]).status();
        assert!(status.unwrap().success());
    }

    /// Waits for the end of the process, and returns whether it succeeded.
    pub(crate) async fn wait(mut self) -> bool {
        let ended = tokio::task::spawn_blocking(move || self.child.wait().unwrap().success());
        ended.await.unwrap()
    }

    pub(crate) async fn channel(&self) -> Channel {
        let channel = Channel::from_shared(format!("http://{}", self.grpc())).unwrap();
        channel.connect().await.unwrap()
    }

    pub(crate) async fn client(&self) -> RateLimitServiceClient<Channel> {
        RateLimitServiceClient::new(self.channel().await)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn call(domain: &str, user: &str) -> RateLimitRequest {
    RateLimitRequest {
        domain: domain.into(),
        descriptors: vec![RateLimitDescriptor {
            entries: vec![Entry {
                key: "user".into(),
                value: user.into(),
            }],
            ..RateLimitDescriptor::default()
        }],
        ..RateLimitRequest::default()
    }
}

/// Sends a request on a connection of its own. Returns the status and the rest of the response.
pub(crate) fn get(address: SocketAddr, path: &str) -> (u16, String) {
    get_with(address, path, "")
}

pub(crate) fn get_with(address: SocketAddr, path: &str, fields: &str) -> (u16, String) {
    try_get(address, path, fields).unwrap()
}

pub(crate) fn try_get(
    address: SocketAddr,
    path: &str,
    fields: &str,
) -> std::io::Result<(u16, String)> {
    send(address, &format!("GET {path} HTTP/1.1\r\n{fields}"), "")
}

pub(crate) fn post(address: SocketAddr, path: &str, body: &str) -> (u16, String) {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n"
    );
    send(address, &head, body).unwrap()
}

pub(crate) fn send(address: SocketAddr, head: &str, body: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let request = format!("{head}host: server\r\nconnection: close\r\n\r\n{body}");
    stream.write_all(request.as_bytes())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let status = response.get(9..12).and_then(|status| status.parse().ok());
    Ok((status.unwrap_or(0), response))
}

/// Waits until another process has done something, for at most 30 seconds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    for _ in 0..1_500 {
        if holds() {
            return;
        }
        ticks.tick().await;
    }
    panic!("waited in vain until {what}");
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
