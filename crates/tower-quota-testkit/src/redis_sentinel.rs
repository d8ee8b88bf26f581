//! A primary and a replica watched by real sentinels on free ports, gone when dropped.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use tempfile::TempDir;

use crate::process::{Process, free_port, insist};
use crate::redis_server::RedisServer;
use crate::wait::wait_until;

/// A primary, its replica, and three sentinels of whom two must agree that a primary is gone. One that is silent for
/// half a second is; its replica is promoted within a second or two.
///
/// # Panics
/// All methods panic when `redis-server` is not installed, or the sentinels do not do within 30 s what they should: a
/// test that needs them must not pass without them.
#[derive(Debug)]
pub struct RedisSentinel {
    servers: [RedisServer; 2],
    sentinels: Vec<Sentinel>,
}

#[derive(Debug)]
struct Sentinel {
    port: u16,
    _process: Process,
    _home: TempDir,
}

impl RedisSentinel {
    /// What the sentinels call the primary.
    pub const MASTER_NAME: &'static str = "mymaster";

    /// Starts all five and waits until the replica has caught up and the sentinels know each other.
    #[must_use]
    pub fn start() -> Self {
        let primary = RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]);
        let of_primary = ["--replicaof", "127.0.0.1", &primary.port().to_string(), "--repl-diskless-sync-delay", "0"];
        let replica = RedisServer::start_with(&of_primary);
        let sentinels = (0..3).map(|_| insist("a sentinel", || Sentinel::start(primary.port()))).collect();
        let group = Self { servers: [primary, replica], sentinels };
        wait_until("the replica has caught up", || {
            group.servers[1].command("INFO replication").is_ok_and(|info| info.contains("master_link_status:up"))
        });
        for sentinel in &group.sentinels {
            wait_until("the sentinels know each other and the replica", || {
                sentinel.ask("SENTINEL CKQUORUM mymaster").starts_with("+OK 3")
                    && sentinel.ask("INFO sentinel").contains("slaves=1,sentinels=3")
            });
        }
        group
    }

    /// The URLs of the sentinels.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.sentinels.iter().map(|sentinel| format!("redis://127.0.0.1:{}/", sentinel.port)).collect()
    }

    /// The server that began as primary (0) or as its replica (1), to pause it or to look at it.
    #[must_use]
    pub fn server(&self, i: usize) -> &RedisServer {
        &self.servers[i]
    }

    /// Sends a command to a sentinel (0 to 2) until it is carried out.
    pub fn tell_sentinel(&self, i: usize, command: &str) {
        wait_until(command, || self.sentinels[i].ask(command).starts_with("+OK"));
    }

    /// Kills a server, as a crash would.
    pub fn kill(&mut self, i: usize) {
        self.servers[i].kill();
    }

    /// Starts a killed server again, empty. The sentinels make it a replica.
    pub fn start_again(&mut self, i: usize) {
        self.servers[i].start_again();
    }

    /// Asks a sentinel to promote the replica though nothing is wrong.
    pub fn fail_over(&self) {
        self.tell_sentinel(0, "SENTINEL FAILOVER mymaster");
    }

    /// Waits until a server is a primary and the first sentinel says so. The others may not know yet.
    pub fn wait_for_promotion(&self, i: usize) {
        let port = self.servers[i].port().to_string();
        wait_until("the replica is promoted", || {
            self.servers[i].command("INFO replication").is_ok_and(|info| info.contains("role:master"))
                && self
                    .sentinels
                    .iter()
                    .any(|sentinel| sentinel.ask("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster").contains(&port))
        });
    }
}

impl Sentinel {
    fn start(primary: u16) -> io::Result<Self> {
        let home = TempDir::new()?;
        let port = free_port()?;
        // A sentinel writes what it learns back into its configuration, which therefore must be a file.
        let configuration = home.path().join("sentinel.conf");
        let settings = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\n\
             sentinel monitor mymaster 127.0.0.1 {primary} 2\n\
             sentinel down-after-milliseconds mymaster 500\n\
             sentinel failover-timeout mymaster 3000\n",
            home.path().display()
        );
        fs::write(&configuration, settings)?;
        let arguments = [configuration.to_string_lossy().into_owned(), "--sentinel".to_owned()];
        let process = Process::start(&arguments, "+monitor master")?;
        Ok(Self { port, _process: process, _home: home })
    }

    fn ask(&self, command: &str) -> String {
        self.try_ask(command).unwrap_or_default()
    }

    /// A sentinel knows no `QUIT`: it is asked on a connection that says at once that nothing more will follow.
    fn try_ask(&self, command: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(format!("{command}\r\n").as_bytes())?;
        stream.shutdown(Shutdown::Write)?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        Ok(reply)
    }
}
