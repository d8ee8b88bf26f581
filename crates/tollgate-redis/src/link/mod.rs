//! How the server is reached: the one place that knows what kind of connection is behind a store.

mod cluster;
mod election;
mod held;
mod line;
mod reach;
mod sentinel;
mod server;

use core::time::Duration;
use std::error::Error;
use std::sync::Arc;

use deadpool_redis::{Pool, PoolError};
use redis::{Client, ConnectionInfo, ErrorKind, RedisError, Value};

use self::cluster::Cluster;
use self::held::Held;
use self::line::Line;
use self::sentinel::Sentinels;
use self::server::Server;

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
    Pool(Arc<Held>),
}

/// Why a call came to nothing.
pub(crate) enum Trouble {
    /// There was no connection to send it on.
    Connect(Box<dyn Error + Send + Sync>),
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

    /// A link to the cluster that these nodes belong to.
    pub(crate) fn cluster(nodes: Vec<ConnectionInfo>, patience: Duration) -> Result<Self, RedisError> {
        Ok(Self::Cluster(Arc::new(Line::new(Cluster::new(nodes, patience)?))))
    }

    /// A link through a connection of a pool.
    pub(crate) fn pool(pool: Pool) -> Self {
        Self::Pool(Arc::new(Held::new(pool)))
    }

    /// Waits until there is a connection.
    pub(crate) async fn connect(&self) -> Result<(), Trouble> {
        match self {
            Self::Server(line) => line.connect().await.map_err(Trouble::connect),
            Self::Sentinels(line) => line.connect().await.map_err(Trouble::connect),
            Self::Cluster(line) => line.connect().await.map_err(Trouble::connect),
            Self::Pool(held) => held.connect().await,
        }
    }

    /// Runs the script once, on the partition that a key stands for.
    pub(crate) async fn run(&self, key: &str, request: &[u8]) -> Result<Value, Trouble> {
        match self {
            Self::Server(line) => line.run(key, request).await,
            Self::Sentinels(line) => line.run(key, request).await,
            Self::Cluster(line) => line.run(key, request).await,
            Self::Pool(held) => held.run(key, request).await,
        }
    }

    /// Asks the server that holds a key for a sign of life. That it may not be asked for one is a sign too.
    pub(crate) async fn is_alive(&self, key: &str) -> bool {
        let answer = match self {
            Self::Server(line) => line.ping(key).await,
            Self::Sentinels(line) => line.ping(key).await,
            Self::Cluster(line) => line.ping(key).await,
            Self::Pool(held) => held.ping().await,
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
            Self::Pool(held) => held.renew(),
        }
    }
}

impl Trouble {
    fn connect(error: RedisError) -> Self {
        Self::Connect(Box::new(error))
    }

    fn of_call(error: RedisError) -> Self {
        match error.kind() {
            // The client had nobody to send it to.
            ErrorKind::ClusterConnectionNotFound => Self::connect(error),
            _ => Self::Call(error),
        }
    }

    fn from_pool(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::connect(error),
            other => Self::Connect(Box::new(other)),
        }
    }
}
