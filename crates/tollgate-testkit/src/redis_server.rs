//! Real Redis servers on free ports, gone when dropped.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// A `redis-server` of its own on a free loopback port, without persistence, killed when dropped.
///
/// # Panics
/// The constructors panic when `redis-server` is not installed or does not start: a test that needs Redis must not
/// pass without it.
#[derive(Debug)]
pub struct RedisServer {
    process: Child,
    port: u16,
    home: TempDir,
    options: Vec<String>,
}

impl RedisServer {
    /// Starts a server and waits until it answers.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with further command line options, such as `["--maxmemory", "2mb"]`.
    #[must_use]
    #[expect(clippy::panic, reason = "documented: without a server there is no test")]
    pub fn start_with(options: &[&str]) -> Self {
        // Another process may take a port between its choice and the server's start: then the next one is tried.
        let mut last = None;
        for _ in 0..5 {
            match Self::try_start(options) {
                Ok(server) => return server,
                Err(error) => last = Some(error),
            }
        }
        panic!("redis-server did not start ({last:?}): install it (apt-get install redis-server)");
    }

    /// Kills the server, as a crash would: connections break and everything is forgotten.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts the server again, empty, on the port and with the options it had.
    ///
    /// # Panics
    /// When it does not start.
    #[expect(clippy::panic, reason = "documented: without a server there is no test")]
    pub fn start_again(&mut self) {
        self.kill();
        match launch(self.port, &self.home, &self.options) {
            Ok(process) => self.process = process,
            Err(error) => panic!("redis-server did not start again: {error}"),
        }
    }

    /// `redis://127.0.0.1:PORT/`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends one inline command and returns the raw reply, up to the pause that ends it. Meant for a look from
    /// outside: `INFO commandstats`, `SCRIPT FLUSH`, `CONFIG SET`.
    ///
    /// # Errors
    /// When the server does not answer within a second.
    pub fn command(&self, line: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(format!("{line}\r\nQUIT\r\n").as_bytes())?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        Ok(reply.trim_end_matches("+OK\r\n").to_owned())
    }

    fn try_start(options: &[&str]) -> io::Result<Self> {
        let home = TempDir::new()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let process = launch(port, &home, &options)?;
        Ok(Self { process, port, home, options })
    }
}

/// Starts a server process and waits until it is ready.
fn launch(port: u16, home: &TempDir, options: &[String]) -> io::Result<Child> {
    let mut process = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .args(["--dir", &home.path().to_string_lossy()])
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(output) = process.stdout.take() {
        // The server says when it is ready; end of output means that it gave up.
        let mut lines = BufReader::new(output);
        let mut line = String::new();
        while lines.read_line(&mut line)? > 0 {
            if line.contains("Ready to accept connections") {
                // Keep draining, so that the server never blocks on a full pipe.
                std::thread::spawn(move || io::copy(&mut lines, &mut io::sink()));
                return Ok(process);
            }
            line.clear();
        }
    }
    let _ = process.kill();
    let _ = process.wait();
    Err(io::Error::other(format!("gave up on port {port}")))
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}
