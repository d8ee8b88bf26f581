//! A primary that sentinels know the address of. All of them are asked each time a connection is made.

use core::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{ConnectionAddr, ConnectionInfo, ErrorKind, RedisError, RedisResult, Value};
use tokio::task::JoinSet;

use super::election::{self, Address, News};
use super::reach::{Reach, Verdict};
use super::server::{Dialer, Server};
use crate::script::Call;

/// A primary under this name, at whatever address.
pub(crate) struct Sentinels {
    sentinels: Vec<ConnectionInfo>,
    name: String,
    /// How to connect to the primary, but for its address.
    primary: ConnectionInfo,
    patience: Duration,
}

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

    async fn find(&self) -> RedisResult<MultiplexedConnection> {
        // Half the patience: the other half is for the primary.
        let patience = self.patience / 2;
        let mut news = JoinSet::new();
        for sentinel in &self.sentinels {
            let asking = ask(sentinel.clone(), self.name.clone(), patience);
            news.spawn(async move { News::Named(within(patience, asking).await) });
        }
        election::hold(news, |address| {
            let connecting = connect(self.primary.clone(), address.clone(), patience);
            async move { News::Connected(address, within(patience, connecting).await) }
        })
        .await
    }
}

/// What one sentinel says.
async fn ask(sentinel: ConnectionInfo, name: String, patience: Duration) -> RedisResult<Address> {
    let mut connection = Dialer::new(sentinel, patience)?.dial().await?;
    let mut command = redis::cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let address: Option<Address> = command.query_async(&mut connection).await?;
    address.ok_or_else(|| (ErrorKind::MasterNameNotFoundBySentinel, "the sentinel knows no such primary").into())
}

/// A connection to the server at this address, unless it says that it is a replica.
async fn connect(
    primary: ConnectionInfo,
    (found, at): Address,
    patience: Duration,
) -> RedisResult<MultiplexedConnection> {
    let address = match primary.addr().clone() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host: found, port: at, insecure, tls_params }
        }
        _ => ConnectionAddr::Tcp(found, at),
    };
    let mut connection = Dialer::new(primary.set_addr(address), patience)?.dial().await?;
    match redis::cmd("ROLE").query_async(&mut connection).await {
        Ok(Value::Array(role)) if role.first() == Some(&Value::BulkString(b"slave".to_vec())) => {
            Err((ErrorKind::MasterNameNotFoundBySentinel, "what the sentinels name as primary is a replica").into())
        }
        // It may not be asked: then the sentinels' word must do.
        Err(error) if error.code() != Some("NOPERM") => Err(error),
        _ => Ok(connection),
    }
}

async fn within<T>(patience: Duration, what: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    tokio::time::timeout(patience, what).await.unwrap_or_else(|_| Err((ErrorKind::Io, "no answer in time").into()))
}

impl Reach for Sentinels {
    type Connection = MultiplexedConnection;

    async fn dial(&self) -> RedisResult<MultiplexedConnection> {
        self.find().await
    }

    async fn run(connection: &mut MultiplexedConnection, key: &str, call: &Call) -> RedisResult<Value> {
        Server::run(connection, key, call).await
    }

    async fn ping(connection: &mut MultiplexedConnection, key: &str) -> RedisResult<Value> {
        Server::ping(connection, key).await
    }

    fn verdict(error: &RedisError) -> Verdict {
        Server::verdict(error)
    }
}
