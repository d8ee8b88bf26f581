//! A primary that sentinels know the address of.
//!
//! Each time a connection is made, all sentinels are asked at once. What more than half of them say is taken at once;
//! failing that, what most of those say who answer in time. So a sentinel that is gone or silent costs nothing, and one
//! that is cut off from the others and still believes in the old primary is outvoted.

use core::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{ConnectionAddr, ConnectionInfo, ErrorKind, RedisError, RedisResult, Value};
use tokio::task::JoinSet;

use super::reach::{Reach, Verdict};
use super::server::{Dialer, Server};

/// A primary under this name, at whatever address.
pub(crate) struct Sentinels {
    sentinels: Vec<ConnectionInfo>,
    name: String,
    /// How to connect to the primary, but for its address.
    primary: ConnectionInfo,
    patience: Duration,
}

type Address = (String, u16);

impl Sentinels {
    /// The host of `primary` stands for the name under which the sentinels know it.
    pub(super) fn new(
        sentinels: Vec<ConnectionInfo>,
        primary: ConnectionInfo,
        patience: Duration,
    ) -> RedisResult<Self> {
        let name = match primary.addr() {
            ConnectionAddr::Tcp(name, _) | ConnectionAddr::TcpTls { host: name, .. } => name.clone(),
            _ => return Err((ErrorKind::InvalidClientConfig, "a primary under sentinels has no path").into()),
        };
        if sentinels.is_empty() {
            return Err((ErrorKind::EmptySentinelList, "there must be at least one sentinel").into());
        }
        Ok(Self { sentinels, name, primary, patience })
    }

    async fn find(&self) -> RedisResult<Address> {
        let mut asked = JoinSet::new();
        for sentinel in &self.sentinels {
            asked.spawn(ask(sentinel.clone(), self.name.clone(), self.patience));
        }
        let mut votes: Vec<(Address, usize)> = Vec::new();
        let mut last = RedisError::from((ErrorKind::MasterNameNotFoundBySentinel, "no sentinel knows the primary"));
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok(Ok(address)) => {
                    let known = votes.iter().position(|(other, _)| *other == address);
                    let i = known.unwrap_or_else(|| {
                        votes.push((address, 0));
                        votes.len() - 1
                    });
                    votes[i].1 += 1;
                    if votes[i].1 * 2 > self.sentinels.len() {
                        break;
                    }
                }
                Ok(Err(error)) => last = error,
                // The task was stopped, with its runtime.
                Err(_) => {}
            }
        }
        votes.into_iter().max_by_key(|(_, votes)| *votes).map(|(address, _)| address).ok_or(last)
    }

    async fn dial_primary(&self) -> RedisResult<MultiplexedConnection> {
        let (found, at) = self.find().await?;
        let address = match self.primary.addr().clone() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host: found, port: at, insecure, tls_params }
            }
            _ => ConnectionAddr::Tcp(found, at),
        };
        Dialer::new(self.primary.clone().set_addr(address), self.patience)?.dial().await
    }
}

/// What one sentinel says.
async fn ask(sentinel: ConnectionInfo, name: String, patience: Duration) -> RedisResult<Address> {
    let asking = async {
        let dialer = Dialer::new(sentinel, patience)?;
        let mut connection = dialer.dial().await?;
        let mut command = redis::cmd("SENTINEL");
        command.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
        let address: Option<Address> = command.query_async(&mut connection).await?;
        address.ok_or_else(|| (ErrorKind::MasterNameNotFoundBySentinel, "the sentinel knows no such primary").into())
    };
    // Half the patience: the other half is for the primary.
    within(patience / 2, asking).await
}

async fn within<T>(patience: Duration, what: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    tokio::time::timeout(patience, what).await.unwrap_or_else(|_| Err((ErrorKind::Io, "no answer in time").into()))
}

impl Reach for Sentinels {
    type Connection = MultiplexedConnection;

    async fn dial(&self) -> RedisResult<MultiplexedConnection> {
        within(self.patience, self.dial_primary()).await
    }

    async fn run(connection: &mut MultiplexedConnection, key: &str, request: &[u8]) -> RedisResult<Value> {
        Server::run(connection, key, request).await
    }

    async fn ping(connection: &mut MultiplexedConnection, key: &str) -> RedisResult<Value> {
        Server::ping(connection, key).await
    }

    fn verdict(error: &RedisError) -> Verdict {
        Server::verdict(error)
    }
}
