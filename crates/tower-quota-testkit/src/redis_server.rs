//! Real Redis servers on free ports.

use std::io;

use tempfile::TempDir;

use crate::process::{Process, free_port, start_with_retries};
use crate::resp;
use crate::tls::TlsFiles;

/// The reply to `QUIT`.
const QUIT_REPLY: &[u8] = b"+OK\r\n";

/// A `redis-server` process on a free loopback port, without persistence. It is killed when dropped.
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
        start_with_retries("redis-server", || Self::try_start(&[], options))
    }

    /// Starts a server that accepts TLS only, with the certificate in these files.
    ///
    /// Clients need no certificate. [`command`](Self::command) does not work on it.
    #[must_use]
    pub fn start_tls(files: &TlsFiles) -> Self {
        start_with_retries("redis-server", || {
            let options = files.server_options();
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            Self::try_start(&["--port", "0", "--tls-port"], &options)
        })
    }

    /// Starts a server that accepts TLS only, and only clients with the certificate in these files.
    #[must_use]
    pub fn start_mutual_tls(files: &TlsFiles) -> Self {
        start_with_retries("redis-server", || {
            let trusted = files.certificate().to_string_lossy().into_owned();
            let mut options = files.server_options();
            let mutual = ["--tls-auth-clients", "yes", "--tls-ca-cert-file", &trusted];
            options.extend(mutual.map(str::to_owned));
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            Self::try_start(&["--port", "0", "--tls-port"], &options)
        })
    }

    /// Kills the server, as a crash would: connections break and all data is lost.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Restarts the server, empty, with the same port and options.
    ///
    /// # Panics
    /// When it does not start.
    #[expect(
        clippy::panic,
        reason = "documented: without a server there is no test"
    )]
    pub fn start_again(&mut self) {
        self.kill();
        match launch(&self.options) {
            Ok(process) => self.process = process,
            Err(error) => panic!("redis-server did not start again: {error}"),
        }
    }

    /// Pauses the process (`SIGSTOP`) until [`resume`](Self::resume).
    ///
    /// Connections stay open and the kernel accepts new ones, but none gets a reply.
    ///
    /// # Panics
    /// When the signal cannot be sent.
    #[expect(
        clippy::panic,
        reason = "documented: a test that needs the fault must not pass without it"
    )]
    pub fn pause(&self) {
        if let Err(error) = self.process.signal("STOP") {
            panic!("the server could not be paused: {error}");
        }
    }

    /// Resumes a paused process (`SIGCONT`). It executes the commands that were sent meanwhile.
    ///
    /// # Panics
    /// When the signal cannot be sent.
    #[expect(
        clippy::panic,
        reason = "documented: a test that needs the server must not pass without it"
    )]
    pub fn resume(&self) {
        if let Err(error) = self.process.signal("CONT") {
            panic!("the server could not be resumed: {error}");
        }
    }

    /// Returns the URL, `redis://127.0.0.1:PORT/`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Returns the port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends one inline command and returns the raw reply as text.
    ///
    /// It is meant for tests that inspect or configure the server: `INFO commandstats`, `SCRIPT FLUSH`, `CONFIG SET`.
    /// Bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// When the server does not answer within a second.
    pub fn command(&self, line: &str) -> io::Result<String> {
        let mut reply = resp::inline(self.port, &format!("{line}\r\nQUIT\r\n"), false)?;
        if reply.ends_with(QUIT_REPLY) {
            reply.truncate(reply.len() - QUIT_REPLY.len());
        }
        Ok(String::from_utf8_lossy(&reply).into_owned())
    }

    /// Starts a server. `port_option` ends with the option that takes the port, such as `--port`.
    pub(crate) fn try_start(port_option: &[&str], options: &[&str]) -> io::Result<Self> {
        let home = TempDir::new()?;
        let port = free_port()?;
        let port_option = if port_option.is_empty() {
            &["--port"]
        } else {
            port_option
        };
        let mut all: Vec<String> = port_option
            .iter()
            .map(|&option| option.to_owned())
            .collect();
        all.push(port.to_string());
        all.extend(
            [
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
                "--dir",
            ]
            .map(str::to_owned),
        );
        all.push(home.path().to_string_lossy().into_owned());
        all.extend(options.iter().map(|&option| option.to_owned()));
        let process = launch(&all)?;
        Ok(Self {
            process,
            port,
            _home: home,
            options: all,
        })
    }
}

fn launch(options: &[String]) -> io::Result<Process> {
    // The second is KeyDB's.
    Process::start(options, &["Ready to accept connections", "Thread 0 alive"])
}
