use core::fmt;
use core::future::Future;
use core::time::Duration;
use std::sync::Arc;

use redis::aio::{ConnectionLike, PubSub};
use redis::{Cmd, ErrorKind, Pipeline, RedisFuture, RedisResult, Value};

use crate::config_error::RedisConfigError;
use crate::link::{CallError, Certificates, Link, LinkSettings, Several, within};
use crate::location::Location;

/// A connection to the Redis of a store, for your own data.
///
/// The connection is made on first use, and replaced when it is lost or leads to a replica. In a cluster, each command
/// goes to the owner of its keys. Clones share the connection.
#[derive(Clone)]
pub struct RedisConnection {
    link: Link,
    server: Arc<str>,
    deadline: Duration,
}

impl RedisConnection {
    /// Creates a connection from a URL of [`RedisOptions::connect`](crate::RedisOptions::connect).
    ///
    /// # Errors
    /// Returns [`RedisConfigError::Url`] for an invalid URL.
    pub fn new(url: &str, deadline: Duration) -> Result<Self, RedisConfigError> {
        let location = Location::parse(url, &Certificates::default())?;
        let settings = LinkSettings {
            connect_timeout: LinkSettings::CONNECT_TIMEOUT,
            runtime: None,
            credentials: None,
        };
        Self::to(&location, settings, location.name.as_str().into(), deadline)
    }

    pub(crate) fn to(
        location: &Location,
        settings: LinkSettings,
        server: Arc<str>,
        deadline: Duration,
    ) -> Result<Self, RedisConfigError> {
        Ok(Self {
            link: location.link(settings)?,
            server,
            deadline,
        })
    }

    /// Returns the host and port of the server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Runs your calls on the connection within the deadline.
    ///
    /// # Errors
    /// Returns the error of the client, or [`ErrorKind::Io`] at the deadline. The server may have run the calls.
    pub async fn call<T, F>(&self, call: impl FnOnce(Self) -> F) -> RedisResult<T>
    where
        F: Future<Output = RedisResult<T>>,
    {
        match tokio::time::timeout(self.deadline, call(self.clone())).await {
            Ok(answer) => answer,
            Err(_) => {
                // Replace a dead connection early, because calls are rare.
                self.link.replace();
                let after = format!("{:?}", self.deadline);
                Err((ErrorKind::Io, "no answer within the deadline", after).into())
            }
        }
    }

    /// Subscribes to a channel, on a separate connection.
    ///
    /// # Errors
    /// Returns the error of the client, or [`ErrorKind::Io`] at the deadline.
    pub async fn subscribe(&self, channel: &str) -> RedisResult<PubSub> {
        let subscribing = async {
            let mut subscription = self.link.subscriber().await?;
            subscription.subscribe(channel).await?;
            Ok(subscription)
        };
        within(self.deadline, "no answer in time", subscribing).await
    }
}

impl ConnectionLike for RedisConnection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            self.link
                .run("", command)
                .await
                .map_err(CallError::into_inner)
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let several = Several {
                commands,
                offset,
                count,
            };
            match self
                .link
                .run("", &several)
                .await
                .map_err(CallError::into_inner)?
            {
                Value::Array(replies) => Ok(replies),
                other => Ok(vec![other]),
            }
        })
    }

    /// Returns 0, because the URL chooses the database.
    fn get_db(&self) -> i64 {
        0
    }
}

impl fmt::Debug for RedisConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConnection")
            .field("server", &self.server)
            .field("deadline", &self.deadline)
            .finish()
    }
}
