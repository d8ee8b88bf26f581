//! Real Redis servers on free ports, gone when dropped.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tempfile::TempDir;

use crate::process::{Process, free_port, insist};
use crate::tls::TlsFiles;

/// A `redis-server` of its own on a free loopback port, without persistence, killed when dropped.
///
/// # Panics
/// The constructors panic when `redis-server` is not installed or does not start: a test that needs Redis must not
/// pass without it.
#[derive(Debug)]
pub struct RedisServer {
    process: Process,
    port: u16,
    _home: TempDir,
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
    pub fn start_with(options: &[&str]) -> Self {
        insist("redis-server", || Self::try_start(&[], options))
    }

    /// Starts a server that speaks TLS, and nothing else, with the certificate in these files. It asks its clients for
    /// none. [`command`](Self::command) does not work on it.
    #[must_use]
    pub fn start_tls(files: &TlsFiles) -> Self {
        insist("redis-server", || {
            let options = files.of_a_server();
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            Self::try_start(&["--port", "0", "--tls-port"], &options)
        })
    }

    /// Kills the server, as a crash would: connections break and everything is forgotten.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts the server again, empty, on the port and with the options it had.
    ///
    /// # Panics
    /// When it does not start.
    #[expect(clippy::panic, reason = "documented: without a server there is no test")]
    pub fn start_again(&mut self) {
        self.kill();
        match launch(&self.options) {
            Ok(process) => self.process = process,
            Err(error) => panic!("redis-server did not start again: {error}"),
        }
    }

    /// Stops the process in its tracks (`SIGSTOP`): connections stay open, new ones are accepted by the kernel, nothing
    /// is answered until [`resume`](Self::resume).
    ///
    /// # Panics
    /// When the signal cannot be sent.
    #[expect(clippy::panic, reason = "documented: a fault that did not happen proves nothing")]
    pub fn pause(&self) {
        if let Err(error) = self.process.signal("STOP") {
            panic!("the server could not be paused: {error}");
        }
    }

    /// Lets a paused process go on (`SIGCONT`): what was sent to it meanwhile is carried out.
    ///
    /// # Panics
    /// When the signal cannot be sent.
    #[expect(clippy::panic, reason = "documented: a fault that did not end proves nothing")]
    pub fn resume(&self) {
        if let Err(error) = self.process.signal("CONT") {
            panic!("the server could not be resumed: {error}");
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
        Ok(reply.strip_suffix("+OK\r\n").unwrap_or(&reply).to_owned())
    }

    /// `port_option` says what the port is for, such as `--port`, and may begin with further options.
    pub(crate) fn try_start(port_option: &[&str], options: &[&str]) -> io::Result<Self> {
        let home = TempDir::new()?;
        let port = free_port()?;
        let port_option = if port_option.is_empty() { &["--port"] } else { port_option };
        let mut all: Vec<String> = port_option.iter().map(|&option| option.to_owned()).collect();
        all.push(port.to_string());
        all.extend(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"].map(str::to_owned));
        all.push(home.path().to_string_lossy().into_owned());
        all.extend(options.iter().map(|&option| option.to_owned()));
        let process = launch(&all)?;
        Ok(Self { process, port, _home: home, options: all })
    }
}

fn launch(options: &[String]) -> io::Result<Process> {
    Process::start(options, "Ready to accept connections")
}
