//! How the server is reached: the one place that knows what kind of connection is behind a store.

mod line;

use core::time::Duration;
use std::error::Error;

use deadpool_redis::{Pool, PoolError};
use redis::{Client, RedisError, Value};

use self::line::Line;
use crate::script;

/// A way to the server.
pub(crate) enum Link {
    /// One connection of the store's own, shared by all its requests and replaced when lost.
    Line(Line),
    /// The user's pool: a connection is taken out for each request.
    Pool(Pool),
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

    /// Waits until there is a connection.
    pub(crate) async fn connect(&self) -> Result<(), Trouble> {
        match self {
            Self::Line(line) => line.connect().await.map_err(Trouble::connect),
            Self::Pool(pool) => pool.get().await.map(drop).map_err(Trouble::from_pool),
        }
    }

    /// Runs the script once.
    pub(crate) async fn run(&self, keys: &[String], request: &[u8]) -> Result<Value, Trouble> {
        match self {
            Self::Line(line) => line.run(keys, request).await,
            Self::Pool(pool) => {
                let mut connection = pool.get().await.map_err(Trouble::from_pool)?;
                script::run(&mut connection, keys, request).await.map_err(Trouble::Call)
            }
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
