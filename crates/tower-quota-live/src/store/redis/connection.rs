use core::time::Duration;
use std::sync::Arc;

use redis::aio::{ConnectionLike as _, MultiplexedConnection, PubSub};
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisResult};
use tokio::sync::Mutex;
use tower_quota_redis::RedisLocator;

/// The longest time to connect. Attempts continue in the background when a call gives up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to the server of one slot, for few calls. Clones share the connection.
#[derive(Clone, Debug)]
pub(crate) struct RedisConnection {
    locator: RedisLocator,
    key: Arc<str>,
    deadline: Duration,
    current: Arc<Mutex<Option<MultiplexedConnection>>>,
}

impl RedisConnection {
    /// Creates a connection to the owner of a key, which connects on demand.
    pub(crate) fn new(locator: RedisLocator, key: &str, deadline: Duration) -> Self {
        Self {
            locator,
            key: key.into(),
            deadline,
            current: Arc::default(),
        }
    }

    pub(crate) fn server(&self) -> &str {
        self.locator.server()
    }

    /// Runs your calls on the connection within the deadline.
    ///
    /// # Errors
    /// Returns the error of the client, or [`ErrorKind::Io`] at the deadline. The server may have run the calls.
    pub(crate) async fn call<T, F>(
        &self,
        call: impl FnOnce(MultiplexedConnection) -> F,
    ) -> RedisResult<T>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let calling = async { call(self.connected().await?).await };
        let answer = within(self.deadline, calling).await;
        if answer.is_err()
            && let Ok(mut current) = self.current.try_lock()
        {
            // Find the server again, because the error may come from a former primary.
            *current = None;
        }
        answer
    }

    /// Subscribes to a channel, on a separate connection.
    ///
    /// # Errors
    /// Returns the error of the client, or [`ErrorKind::Io`] after five seconds.
    pub(crate) async fn subscribe(&self, channel: &str) -> RedisResult<PubSub> {
        let subscribing = async {
            let address = self.locator.locate(&self.key).await?;
            let mut subscription = Client::open(address)?.get_async_pubsub().await?;
            subscription.subscribe(channel).await?;
            Ok(subscription)
        };
        within(CONNECT_TIMEOUT, subscribing).await
    }

    /// Returns the connection, and checks it, because calls are rare and servers close idle connections.
    async fn connected(&self) -> RedisResult<MultiplexedConnection> {
        let this = self.clone();
        // Connect in a task, because a handshake may take longer than the deadline of a call.
        let connecting = tokio::spawn(async move {
            let mut current = this.current.lock().await;
            if let Some(known) = &mut *current
                && within(this.deadline, ping(known)).await.is_ok()
            {
                return Ok(known.clone());
            }
            *current = None;
            let connected = this.connect().await?;
            *current = Some(connected.clone());
            Ok(connected)
        });
        connecting
            .await
            .unwrap_or_else(|_| Err((ErrorKind::Client, "the runtime has ended").into()))
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let address = self.locator.locate(&self.key).await?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            // Each call has a deadline of its own.
            .set_response_timeout(None);
        Client::open(address)?
            .get_multiplexed_async_connection_with_config(&config)
            .await
    }
}

async fn ping(connection: &mut MultiplexedConnection) -> RedisResult<()> {
    let ping = redis::cmd("PING");
    connection.req_packed_command(&ping).await.map(drop)
}

async fn within<T>(
    timeout: Duration,
    answer: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    tokio::time::timeout(timeout, answer)
        .await
        .unwrap_or_else(|_| {
            let after = format!("{timeout:?}");
            Err((ErrorKind::Io, "no answer within the deadline", after).into())
        })
}
