//! The processes of a measurement: servers on the first core, and the load on the second.

use std::env;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::connection::{Answers, Connection, Protocol};
use crate::Outcome;
use crate::load::Info;
use crate::turns::now;
use tower_quota_dev::RedisServer;

/// The longest start of a server, on a busy machine too.
const START: Duration = Duration::from_secs(60);

/// Which cores a process may use.
#[derive(Clone, Copy)]
pub(crate) enum Cores {
    First,
    Second,
    All,
}

impl Cores {
    /// Returns a command that runs a program on these cores.
    pub(crate) fn command(self, program: &Path) -> Command {
        let mut command = Command::new("taskset");
        command.arg("-c").arg(self.list()).arg(program);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn list(self) -> String {
        let last = cores().saturating_sub(1);
        match self {
            Self::First => "0".into(),
            Self::Second => last.min(1).to_string(),
            Self::All => format!("0-{last}"),
        }
    }
}

fn cores() -> usize {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with("processor"));
    lines.count().max(1)
}

/// Moves this process, and what it starts, to the second core.
pub(crate) fn move_to_second_core() -> Outcome {
    let mut command = Command::new("taskset");
    command.args(["-a", "-p", "-c", &Cores::Second.list()]);
    let output = command.arg(process::id().to_string()).output();
    let output = output.map_err(|error| format!("taskset: {error}: install util-linux"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into()),
    }
}

/// A running server, which is killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
}

impl Server {
    /// Starts a command that listens on this port.
    pub(crate) fn start(mut command: Command, port: u16) -> io::Result<Self> {
        let child = command.spawn()?;
        Ok(Self { child, port })
    }

    /// Waits until the server has admitted a request.
    #[expect(clippy::disallowed_methods, reason = "the start takes real time")]
    pub(crate) fn until_ready(mut self, protocol: Protocol, value: &[u8]) -> Outcome<Self> {
        let began = now();
        while !matches!(is_admitted(self.port, protocol, value), Ok(true)) {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("a server has ended at its start: {status}").into());
            }
            if began.elapsed() > START {
                return Err("a server has admitted no request in a minute".into());
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(self)
    }

    /// Returns the seconds of CPU that the server has used.
    pub(crate) fn cpu(&self) -> f64 {
        cpu_of(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request on a connection of its own, and returns whether the answer admits it.
#[expect(clippy::disallowed_methods, reason = "an answer takes real time")]
pub(crate) fn is_admitted(port: u16, protocol: Protocol, value: &[u8]) -> Outcome<bool> {
    let answers = Arc::new(Answers::default());
    let (mut connection, receiver) = Connection::open(port, protocol, now(), &answers)?;
    let received = thread::spawn(move || receiver.run(protocol, Duration::ZERO));
    connection.push(Duration::ZERO, value);
    connection.flush()?;
    while !connection.is_idle() {
        thread::sleep(Duration::from_micros(100));
    }
    connection.close();
    received.join().map_err(|_| "a receiver has panicked")?;
    Ok(answers.admitted.load(Ordering::Relaxed) == 1)
}

/// Returns the seconds of CPU that a Redis server has used.
pub(crate) fn redis_cpu(redis: &RedisServer) -> f64 {
    cpu_of(Info::of(redis).number("process_id:") as u32)
}

/// Returns the seconds for which the threads of a process have run, as Linux counts them in nanoseconds.
fn cpu_of(process: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    let nanoseconds = tasks.into_iter().flatten().filter_map(|task| {
        let counts = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        counts.split(' ').next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() / 1e9
}

/// Returns a port that is free now.
pub(crate) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

/// Returns a program that was built next to this one.
pub(crate) fn built_program(name: &str) -> Outcome<PathBuf> {
    let program = env::current_exe()?.with_file_name(name);
    match program.exists() {
        true => Ok(program),
        false => Err(format!(
            "{} is missing: build it with the same profile, `cargo build --release -p tower-quota-server -p tower-quota-bench`",
            program.display()
        )
        .into()),
    }
}
