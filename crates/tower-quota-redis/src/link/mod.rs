//! How the server is reached: the one place that knows what kind of connection is behind a store.

mod cluster;
mod election;
mod line;
mod pool;
mod reach;
mod sentinel;
mod server;
#[cfg(feature = "tls")]
mod tls;

use core::time::Duration;
use std::sync::Arc;

use deadpool_redis::Pool;
use redis::{Client, ConnectionInfo, ErrorKind, IntoConnectionInfo, RedisError, Value};

use self::cluster::Cluster;
use self::line::Line;
pub(crate) use self::line::RENEWAL_PAUSE;
use self::pool::Pooled;
use self::sentinel::Sentinels;
use self::server::Server;
use crate::script::Call;

/// A way to the server.
#[derive(Clone)]
pub(crate) enum Link {
    /// One connection of the store's own, shared by all its requests and replaced when lost.
    Server(Arc<Line<Server>>),
    /// The same to a primary that sentinels find.
    Sentinels(Arc<Line<Sentinels>>),
    /// Connections to all nodes of a cluster, shared by all its partitions.
    Cluster(Arc<Line<Cluster>>),
    /// A connection out of the user's pool, kept while it works.
    Pool(Arc<Line<Pooled>>),
}

/// Why a call came to nothing.
pub(crate) enum Trouble {
    /// There was no connection to send it on.
    Connect(RedisError),
    /// It was sent, and failed.
    Call(RedisError),
}

impl Link {
    /// A link through a connection of its own. An attempt to connect is given up after `patience`.
    pub(crate) fn to(client: &Client, patience: Duration) -> Result<Self, RedisError> {
        Ok(Self::Server(Arc::new(Line::new(Server::new(client, patience)?))))
    }

    /// A link to the primary that these sentinels know by the host of `primary`.
    pub(crate) fn through(
        sentinels: Vec<ConnectionInfo>,
        primary: ConnectionInfo,
        patience: Duration,
    ) -> Result<Self, RedisError> {
        Ok(Self::Sentinels(Arc::new(Line::new(Sentinels::new(sentinels, primary, patience)?))))
    }

    /// A link to the cluster that these nodes belong to. `trust` holds the certificates to trust, in PEM, if not the
    /// system's.
    pub(crate) fn cluster(
        nodes: Vec<ConnectionInfo>,
        trust: Option<Vec<u8>>,
        patience: Duration,
    ) -> Result<Self, RedisError> {
        Ok(Self::Cluster(Arc::new(Line::new(Cluster::new(nodes, trust, patience)?))))
    }

    /// A link through a connection of a pool. An attempt to have one handed out is given up after `patience`.
    pub(crate) fn pool(pool: Pool, patience: Duration) -> Self {
        Self::Pool(Arc::new(Line::new(Pooled::new(pool, patience))))
    }

    /// Waits until there is a connection.
    pub(crate) async fn connect(&self) -> Result<(), Trouble> {
        match self {
            Self::Server(line) => line.connect().await,
            Self::Sentinels(line) => line.connect().await,
            Self::Cluster(line) => line.connect().await,
            Self::Pool(line) => line.connect().await,
        }
    }

    /// Runs the script once, on the partition that a key stands for.
    pub(crate) async fn run(&self, key: &str, call: &Call) -> Result<Value, Trouble> {
        match self {
            Self::Server(line) => line.run(key, call).await,
            Self::Sentinels(line) => line.run(key, call).await,
            Self::Cluster(line) => line.run(key, call).await,
            Self::Pool(line) => line.run(key, call).await,
        }
    }

    /// Asks the server that holds a key for a sign of life. That it may not be asked for one is a sign too.
    pub(crate) async fn is_alive(&self, key: &str) -> bool {
        let answer = match self {
            Self::Server(line) => line.ping(key).await,
            Self::Sentinels(line) => line.ping(key).await,
            Self::Cluster(line) => line.ping(key).await,
            Self::Pool(line) => line.ping(key).await,
        };
        match answer {
            Ok(_) => true,
            Err(Trouble::Connect(_)) => false,
            Err(Trouble::Call(error)) => error.code() == Some("NOPERM"),
        }
    }

    /// Makes another connection because there is reason to doubt the one there is.
    pub(crate) fn renew(&self) {
        match self {
            Self::Server(line) => line.renew(),
            Self::Sentinels(line) => line.renew(),
            Self::Cluster(line) => line.renew(),
            Self::Pool(line) => line.renew(),
        }
    }
}

/// What a URL says, with the certificates to trust, if not the system's.
pub(crate) fn address(url: &str, trust: Option<&[u8]>) -> Result<ConnectionInfo, RedisError> {
    #[cfg(feature = "tls")]
    if let Some(pem) = trust
        && url.starts_with("rediss://")
    {
        return Client::build_with_tls(url, tls::trusting(pem)).map(|client| client.get_connection_info().clone());
    }
    let _ = trust;
    url.into_connection_info()
}

impl Trouble {
    fn of_call(error: RedisError) -> Self {
        match error.kind() {
            // The client had nobody to send it to.
            ErrorKind::ClusterConnectionNotFound => Self::Connect(error),
            _ => Self::Call(error),
        }
    }
}
