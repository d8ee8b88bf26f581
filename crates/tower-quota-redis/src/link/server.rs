use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, RedisResult, Value};

use super::backend::{Backend, LinkConnection};
use super::request::LinkRequest;
use super::{Provider, with_credentials};

/// The maximum number of requests that wait to be written. With the client's default of 50, a burst
/// would wait.
const QUEUE: usize = 1024;

pub(crate) struct Server {
    client: Client,
    config: AsyncConnectionConfig,
    connect_timeout: Duration,
    credentials: Option<Provider>,
}

impl Server {
    pub(super) fn new(
        address: ConnectionInfo,
        connect_timeout: Duration,
        credentials: Option<Provider>,
    ) -> RedisResult<Self> {
        #[cfg(feature = "tls")]
        super::tls::choose_cryptography();
        // Set `TCP_NODELAY`, because requests are small, and waiting for a full packet only delays
        // them.
        let settings = address.tcp_settings().clone().set_nodelay(true);
        let client = Client::open(address.set_tcp_settings(settings))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(connect_timeout))
            // Set no timeout here, because the store bounds its calls.
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE);
        #[cfg(feature = "credentials")]
        let config = match credentials.clone() {
            Some(provider) => config.set_credentials_provider(provider),
            None => config,
        };
        Ok(Self {
            client,
            config,
            connect_timeout,
            credentials,
        })
    }
}

impl Backend for Server {
    type Connection = MultiplexedConnection;

    async fn dial(&self) -> RedisResult<MultiplexedConnection> {
        self.client
            .get_multiplexed_async_connection_with_config(&self.config)
            .await
    }

    async fn locate(&self, _key: &str) -> RedisResult<ConnectionInfo> {
        let address = self.client.get_connection_info().clone();
        with_credentials(address, self.credentials.as_ref(), self.connect_timeout).await
    }
}

impl LinkConnection for MultiplexedConnection {
    /// Sends a command without waiting for the reply. On a lost connection, sending fails at once.
    async fn is_lost(&self, _key: &str, is_silent: bool, _patience: Duration) -> bool {
        if !is_silent {
            return false;
        }
        // Send `TIME`. Every user has the right to call it, because the script does.
        let (mut connection, command) = (self.clone(), redis::cmd("TIME"));
        let mut reply = pin!(connection.send_packed_command(&command));
        poll_fn(|context| Poll::Ready(matches!(reply.as_mut().poll(context), Poll::Ready(Err(_)))))
            .await
    }

    async fn run(&mut self, key: &str, request: &impl LinkRequest) -> RedisResult<Value> {
        request.send(self, key).await
    }
}
