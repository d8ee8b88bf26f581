//! `redis-server` processes.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::{env, fs, mem};

use tempfile::TempDir;

/// A running server or sentinel, killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    command: Command,
    child: Child,
    ready: &'static [&'static str],
    _home: TempDir,
}

impl Process {
    /// Starts [`program`] with a configuration file and further options, on loopback and in a folder of its own.
    ///
    /// Waits until a line of the log contains one of the texts in `ready`.
    pub(crate) fn start(
        settings: &str,
        options: &[&str],
        ready: &'static [&'static str],
    ) -> io::Result<Self> {
        let home = TempDir::new()?;
        let folder = home.path().display();
        let file = home.path().join("redis.conf");
        fs::write(
            &file,
            format!("bind 127.0.0.1\ndir \"{folder}\"\n{settings}"),
        )?;
        let mut command = Command::new(program());
        command
            .arg(file)
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let child = command.spawn()?;
        let mut process = Self {
            command,
            child,
            ready,
            _home: home,
        };
        process.wait_until_ready()?;
        Ok(process)
    }

    /// Starts the process again with the same settings.
    pub(crate) fn start_again(&mut self) -> io::Result<()> {
        self.kill();
        self.child = self.command.spawn()?;
        self.wait_until_ready()
    }

    fn wait_until_ready(&mut self) -> io::Result<()> {
        let mut last = String::new();
        if let Some(output) = self.child.stdout.take() {
            // The output ends when the server exits.
            let mut lines = BufReader::new(output);
            let mut line = String::new();
            while lines.read_line(&mut line)? > 0 {
                if self.ready.iter().any(|text| line.contains(text)) {
                    // Keep draining, so that the server never blocks on a full pipe.
                    thread::spawn(move || io::copy(&mut lines, &mut io::sink()));
                    return Ok(());
                }
                last = mem::take(&mut line);
            }
        }
        let last = last.trim_end();
        Err(io::Error::other(format!(
            "exited at start, after logging {last:?}"
        )))
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends a signal by name, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) -> io::Result<()> {
        let status = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
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
/// Panics when all attempts fail.
#[expect(
    clippy::panic,
    reason = "documented: a test that needs Redis must not pass without it"
)]
pub(crate) fn start_with_retries<T>(what: &str, mut attempt: impl FnMut() -> io::Result<T>) -> T {
    let mut left = 5;
    loop {
        left -= 1;
        match attempt() {
            Ok(made) => return made,
            Err(error) if left == 0 => panic!(
                "{what} did not start ({}: {error}): install it (apt-get install redis-server), or name yours in \
                 REDIS_SERVER",
                program().display()
            ),
            Err(_) => {}
        }
    }
}
