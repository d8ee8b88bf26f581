//! `redis-server` processes.

use std::env;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::mem;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;

/// A running server or sentinel, killed when dropped.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// Starts [`program`] and waits until a line of its log contains one of the texts in `ready`.
    pub(crate) fn start(arguments: &[String], ready: &[&str]) -> io::Result<Self> {
        let program = program();
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", program.display()))
        };
        let mut child = Command::new(&program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(named)?;
        let output = child.stdout.take();
        let process = Self(child);
        let mut last = String::new();
        if let Some(output) = output {
            // The output ends when the server exits.
            let mut lines = BufReader::new(output);
            let mut line = String::new();
            while lines.read_line(&mut line)? > 0 {
                if ready.iter().any(|text| line.contains(text)) {
                    // Keep draining, so that the server never blocks on a full pipe.
                    thread::spawn(move || io::copy(&mut lines, &mut io::sink()));
                    return Ok(process);
                }
                last = mem::take(&mut line);
            }
        }
        Err(named(io::Error::other(format!(
            "exited at start, after logging {:?}",
            last.trim_end()
        ))))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Sends a signal by name, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) -> io::Result<()> {
        let status = Command::new("kill")
            .args([&format!("-{name}"), &self.id().to_string()])
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!("kill -{name} failed")))
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the server to start: `REDIS_SERVER`, a path or a name on the `PATH`, or `redis-server`.
fn program() -> OsString {
    env::var_os("REDIS_SERVER")
        .filter(|named| !named.is_empty())
        .unwrap_or_else(|| "redis-server".into())
}

/// The distance between a cluster node's port and that of its cluster bus.
const BUS_OFFSET: u16 = 10_000;

/// Returns a port that is free now, as is the port that a cluster's bus has with it.
///
/// Another process may take either before it is used: see [`start_with_retries`].
pub(crate) fn free_port() -> io::Result<u16> {
    let bus = TcpListener::bind("127.0.0.1:0")?;
    let port = bus.local_addr()?.port().saturating_sub(BUS_OFFSET);
    Ok(TcpListener::bind(("127.0.0.1", port))?.local_addr()?.port())
}

/// Starts something in up to five attempts, because another process may take a free port first.
///
/// # Panics
/// When all attempts fail.
#[expect(
    clippy::panic,
    reason = "documented: a test that needs Redis must not pass without it"
)]
pub(crate) fn start_with_retries<T>(what: &str, mut attempt: impl FnMut() -> io::Result<T>) -> T {
    let mut last = None;
    for _ in 0..5 {
        match attempt() {
            Ok(made) => return made,
            Err(error) => last = Some(error),
        }
    }
    panic!(
        "{what} did not start ({last:?}): install it (apt-get install redis-server), or name yours in REDIS_SERVER"
    );
}
