//! A primary and a replica, monitored by real sentinels on free ports.

use std::io;

use crate::process::{Process, free_port, start_with_retries};
use crate::redis_server::RedisServer;
use crate::resp;
use crate::wait::wait_until;

/// A primary, its replica, and three sentinels. All are killed when dropped.
///
/// Two sentinels must agree that the primary is down. A server that is silent for half a second counts as down. Its
/// replica is promoted within a second or two.
///
/// # Panics
/// All methods panic when `redis-server` is not installed, or when an operation takes more than 30 s: a test that needs
/// sentinels must not pass without them.
#[derive(Debug)]
pub struct RedisSentinel {
    servers: [RedisServer; 2],
    sentinels: Vec<Sentinel>,
}

#[derive(Debug)]
struct Sentinel {
    port: u16,
    _process: Process,
}

impl RedisSentinel {
    /// The name of the primary in the sentinels.
    pub const MASTER_NAME: &'static str = "mymaster";

    /// Starts all five, and waits until the replica is in sync and the sentinels know each other.
    #[must_use]
    pub fn start() -> Self {
        let primary = RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]);
        let of_primary = [
            "--replicaof",
            "127.0.0.1",
            &primary.port().to_string(),
            "--repl-diskless-sync-delay",
            "0",
        ];
        let replica = RedisServer::start_with(&of_primary);
        let sentinels = (0..3)
            .map(|_| start_with_retries("a sentinel", || Sentinel::start(primary.port())))
            .collect();
        let group = Self {
            servers: [primary, replica],
            sentinels,
        };
        wait_until("the replica is in sync", || {
            group.servers[1].replicates("master_link_status:up")
        });
        for sentinel in &group.sentinels {
            wait_until("the sentinels know each other and the replica", || {
                sentinel
                    .ask("SENTINEL CKQUORUM mymaster")
                    .starts_with("+OK 3")
                    && sentinel
                        .ask("INFO sentinel")
                        .contains("slaves=1,sentinels=3")
            });
        }
        group
    }

    /// Returns the URLs of the sentinels.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.sentinels
            .iter()
            .map(|sentinel| format!("redis://127.0.0.1:{}/", sentinel.port))
            .collect()
    }

    /// Returns the server that started as primary (0) or as its replica (1).
    #[must_use]
    pub fn server(&self, i: usize) -> &RedisServer {
        &self.servers[i]
    }

    /// Sends a command to a sentinel (0 to 2) until the reply is `OK`.
    pub fn tell_sentinel(&self, i: usize, command: &str) {
        wait_until(command, || {
            self.sentinels[i].ask(command).starts_with("+OK")
        });
    }

    /// Kills a server, as a crash would.
    pub fn kill(&mut self, i: usize) {
        self.servers[i].kill();
    }

    /// Makes a sentinel promote the replica while the primary is up.
    ///
    /// A sentinel gives a failover up if the replica was silent for a moment, and then needs another command. During a
    /// failover it refuses further commands.
    pub fn fail_over(&self) {
        let replica = usize::from(self.servers[0].replicates("role:master"));
        wait_until("the replica is promoted", || {
            let is_promoted = self.servers[replica].replicates("role:master");
            if !is_promoted {
                self.sentinels[0].ask("SENTINEL FAILOVER mymaster");
            }
            is_promoted
        });
    }

    /// Waits until a server is a primary and a sentinel reports it. The other sentinels may not know yet.
    pub fn wait_for_promotion(&self, i: usize) {
        let port = self.servers[i].port().to_string();
        wait_until("the replica is promoted", || {
            self.servers[i].replicates("role:master")
                && self.sentinels.iter().any(|sentinel| {
                    sentinel
                        .ask("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster")
                        .contains(&port)
                })
        });
    }
}

impl Sentinel {
    fn start(primary: u16) -> io::Result<Self> {
        let port = free_port()?;
        let settings = format!(
            "port {port}\n\
             sentinel monitor mymaster 127.0.0.1 {primary} 2\n\
             sentinel down-after-milliseconds mymaster 500\n\
             sentinel failover-timeout mymaster 3000\n"
        );
        let process = Process::start(&settings, &["--sentinel"], &["+monitor master"])?;
        Ok(Self {
            port,
            _process: process,
        })
    }

    /// Sends a command and returns the reply, which is empty after a failure.
    fn ask(&self, command: &str) -> String {
        // A sentinel has no `QUIT`.
        let reply = resp::inline(self.port, &format!("{command}\r\n"), true).unwrap_or_default();
        String::from_utf8_lossy(&reply).into_owned()
    }
}
