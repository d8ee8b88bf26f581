//! One connection to a server or a cluster, made when it is needed and replaced when it is lost.

use core::future::Future;
use core::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, FromRedisValue, IntoConnectionInfo, Pipeline, RedisError,
    RedisFuture, RedisResult, ScriptInvocation, Value,
};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::RedisRules;
use crate::live::store::RuleStoreError;

pub(crate) struct Connection {
    name: String,
    dialer: Dialer,
    /// The nodes, for connections of their own.
    nodes: Vec<ConnectionInfo>,
    open: Mutex<Option<Open>>,
}

enum Dialer {
    Server(Box<Client>),
    Cluster(Box<ClusterClient>),
}

#[derive(Clone)]
enum Open {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Connection {
    pub(crate) fn to_server(url: &str) -> RedisResult<Self> {
        let client = Client::open(url)?;
        let address = client.get_connection_info().clone();
        let name = format!("redis {}", address.addr());
        Ok(Self { name, dialer: Dialer::Server(Box::new(client)), nodes: vec![address], open: Mutex::default() })
    }

    pub(crate) fn to_cluster(urls: &[&str]) -> RedisResult<Self> {
        let nodes = urls.iter().map(|url| url.into_connection_info()).collect::<RedisResult<Vec<_>>>()?;
        let client = ClusterClient::builder(nodes.clone()).connection_timeout(DIAL).response_timeout(DIAL).build()?;
        let names: Vec<String> = nodes.iter().map(|node| node.addr().to_string()).collect();
        let name = format!("redis cluster {}", names.join(", "));
        Ok(Self { name, dialer: Dialer::Cluster(Box::new(client)), nodes, open: Mutex::default() })
    }

    /// Returns the server's address, without user and password.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the addresses where announcements are received: any node of a cluster has all of them.
    pub(super) fn subscribers(&self) -> Vec<ConnectionInfo> {
        self.nodes.clone()
    }

    pub(crate) async fn invoke<T: FromRedisValue>(&self, call: &ScriptInvocation<'_>) -> Result<T, RuleStoreError> {
        self.call(async |mut open| call.invoke_async(&mut open).await).await
    }

    pub(super) async fn pipeline<T: FromRedisValue>(&self, call: &Pipeline) -> Result<T, RuleStoreError> {
        self.call(async |mut open| call.query_async(&mut open).await).await
    }

    pub(super) async fn command<T: FromRedisValue>(&self, call: &Cmd) -> Result<T, RuleStoreError> {
        self.call(async |mut open| call.query_async(&mut open).await).await
    }

    /// Makes a call, up to the deadline. It is never repeated: a lost call may have been made.
    async fn call<T, F>(&self, call: impl FnOnce(Open) -> F) -> Result<T, RuleStoreError>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let answer = timeout(RedisRules::DEADLINE, async { call(self.open().await?).await }).await;
        let is_lost = match &answer {
            Ok(Ok(_)) => false,
            Ok(Err(error)) => error.is_io_error() || error.is_unrecoverable_error() || is_read_only(error),
            Err(_) => true,
        };
        if is_lost {
            *self.open.lock().await = None;
        }
        match answer {
            Ok(answer) => answer.map_err(|error| RuleStoreError::unavailable(&*self.name, error)),
            Err(_) => Err(RuleStoreError::unavailable(&*self.name, "no answer within the deadline of 2 s")),
        }
    }

    async fn open(&self) -> RedisResult<Open> {
        let mut open = self.open.lock().await;
        if let Some(open) = &*open {
            return Ok(open.clone());
        }
        let made = match &self.dialer {
            Dialer::Server(client) => {
                // The deadline of the call covers the answer.
                let config = AsyncConnectionConfig::new().set_connection_timeout(Some(DIAL)).set_response_timeout(None);
                Open::Server(client.get_multiplexed_async_connection_with_config(&config).await?)
            }
            Dialer::Cluster(client) => Open::Cluster(client.get_async_connection().await?),
        };
        Ok(open.insert(made).clone())
    }
}

/// The longest that connecting may take.
const DIAL: Duration = Duration::from_millis(1_500);

/// Returns whether the server has become a replica: its name may lead to the new primary by now.
fn is_read_only(error: &RedisError) -> bool {
    error.code() == Some("READONLY")
}

impl ConnectionLike for Open {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Server(open) => open.req_packed_command(command),
            Self::Cluster(open) => open.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Server(open) => open.req_packed_commands(commands, offset, count),
            Self::Cluster(open) => open.req_packed_commands(commands, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Server(open) => open.get_db(),
            Self::Cluster(open) => open.get_db(),
        }
    }
}
