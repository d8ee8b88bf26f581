//! Real Redis servers on free ports.

use std::io;

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
        start_with_retries("redis-server", || Self::try_start("port", "", options))
    }

    /// Starts a server that accepts TLS only, with the certificate in these files.
    ///
    /// Clients need no certificate. [`command`](Self::command) does not work on it.
    #[must_use]
    pub fn start_tls(files: &TlsFiles) -> Self {
        Self::start_with_tls(&files.server_settings())
    }

    /// Starts a server that accepts TLS only, and only clients with the certificate in these files.
    #[must_use]
    pub fn start_mutual_tls(files: &TlsFiles) -> Self {
        let trusted = files.certificate();
        Self::start_with_tls(&format!(
            "{}tls-auth-clients yes\ntls-ca-cert-file \"{}\"\n",
            files.server_settings(),
            trusted.display()
        ))
    }

    fn start_with_tls(settings: &str) -> Self {
        start_with_retries("redis-server", || {
            Self::try_start("port 0\ntls-port", settings, &[])
        })
    }

    /// Kills the server, as a crash would: connections break and all data is lost.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Restarts the server, empty, with the same port and options.
    ///
    /// # Panics
    /// Panics when it does not start.
    #[expect(
        clippy::panic,
        reason = "documented: without a server there is no test"
    )]
    pub fn start_again(&mut self) {
        if let Err(error) = self.process.start_again() {
            panic!("redis-server did not start again: {error}");
        }
    }

    /// Pauses the process (`SIGSTOP`) until [`resume`](Self::resume).
    ///
    /// Connections stay open and the kernel accepts new ones, but none gets a reply.
    ///
    /// # Panics
    /// Panics when the signal cannot be sent.
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
    /// Panics when the signal cannot be sent.
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
    /// Returns an error when the server does not answer within a second.
    pub fn command(&self, line: &str) -> io::Result<String> {
        let mut reply = resp::inline(self.port, &format!("{line}\r\nQUIT\r\n"), false)?;
        if reply.ends_with(QUIT_REPLY) {
            reply.truncate(reply.len() - QUIT_REPLY.len());
        }
        Ok(String::from_utf8_lossy(&reply).into_owned())
    }

    /// Returns whether the replication of the server has this state.
    pub(crate) fn replicates(&self, state: &str) -> bool {
        self.command("INFO replication")
            .is_ok_and(|info| info.contains(state))
    }

    /// Starts a server with settings of its file, and options. `port_setting` takes the port, such as `port`.
    pub(crate) fn try_start(
        port_setting: &str,
        settings: &str,
        options: &[&str],
    ) -> io::Result<Self> {
        let port = free_port()?;
        let settings = format!("{port_setting} {port}\nsave \"\"\nappendonly no\n{settings}");
        // The second text is KeyDB's.
        let ready = &["Ready to accept connections", "Thread 0 alive"];
        let process = Process::start(&settings, options, ready)?;
        Ok(Self { process, port })
    }
}
