//! How the server is reached: the one place that knows what kind of connection is behind a store.

mod held;
mod line;

use core::time::Duration;
use std::error::Error;

use deadpool_redis::{Pool, PoolError};
use redis::{Client, RedisError, Value};

use self::held::Held;
use self::line::Line;

/// A way to the server.
pub(crate) enum Link {
    /// One connection of the store's own, shared by all its requests and replaced when lost.
    Line(Line),
    /// A connection out of the user's pool, kept while it works.
    Pool(Box<Held>),
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
        Line::new(client, patience).map(Self::Line)
    }

    /// A link through a connection of a pool.
    pub(crate) fn pool(pool: Pool) -> Self {
        Self::Pool(Box::new(Held::new(pool)))
    }

    /// Waits until there is a connection.
    pub(crate) async fn connect(&self) -> Result<(), Trouble> {
        match self {
            Self::Line(line) => line.connect().await.map_err(Trouble::connect),
            Self::Pool(held) => held.connect().await,
        }
    }

    /// Runs the script once, on the partition that a key stands for.
    pub(crate) async fn run(&self, key: &str, request: &[u8]) -> Result<Value, Trouble> {
        match self {
            Self::Line(line) => line.run(key, request).await,
            Self::Pool(held) => held.run(key, request).await,
        }
    }
}

impl Trouble {
    fn connect(error: RedisError) -> Self {
        Self::Connect(Box::new(error))
    }

    fn from_pool(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::connect(error),
            other => Self::Connect(Box::new(other)),
        }
    }
}
