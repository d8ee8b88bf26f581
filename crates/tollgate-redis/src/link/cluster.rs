//! A Redis Cluster, through the client's own cluster connection.
//!
//! 1. The client repeats nothing: what it takes for a lost connection may have been counted. A call that a node sends
//!    elsewhere (`MOVED`, `ASK`) has not been run, so that is followed, here, a few times.
//! 2. The client learns of a new primary from nodes that answer. One that falls silent sends nobody elsewhere, so
//!    whenever a call or a probe fails, the whole connection is made anew, in the background, from the nodes given at
//!    first: that asks for the slots again. The old one serves the other nodes meanwhile.

use core::time::Duration;

use redis::aio::ConnectionLike;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::io::tcp::TcpSettings;
use redis::{
    Cmd, ConnectionInfo, ErrorKind, Pipeline, RedisError, RedisFuture, RedisResult, ServerErrorKind, Value, cmd, pipe,
};

use super::reach::{Reach, Verdict};
use crate::script;

/// How often a call is sent after a slot that moves. Once is the rule; a slot may move again meanwhile.
const MOST_REDIRECTS: usize = 3;

pub(crate) struct Cluster(ClusterClient);

impl Cluster {
    pub(super) fn new(nodes: Vec<ConnectionInfo>, patience: Duration) -> RedisResult<Self> {
        ClusterClient::builder(nodes)
            .retries(0)
            .connection_timeout(patience)
            // Each call has the store's deadline. This bounds what the client asks on its own account.
            .response_timeout(patience)
            .overall_response_timeout(Some(patience))
            .tcp_settings(TcpSettings::default().set_nodelay(true))
            .build()
            .map(Self)
    }
}

impl Reach for Cluster {
    type Connection = ClusterConnection;

    async fn dial(&self) -> RedisResult<ClusterConnection> {
        self.0.get_async_connection().await
    }

    async fn run(connection: &mut ClusterConnection, key: &str, request: &[u8]) -> RedisResult<Value> {
        let mut answer = script::run(connection, key, request).await;
        for _ in 0..MOST_REDIRECTS {
            let Some(mut node) = answer.as_ref().err().and_then(|error| Node::named_in(error, connection)) else {
                break;
            };
            answer = script::run(&mut node, key, request).await;
        }
        answer
    }

    async fn ping(connection: &mut ClusterConnection, key: &str) -> RedisResult<Value> {
        let primary = SingleNodeRoutingInfo::SpecificNode(Route::with_key(key, SlotAddr::Master));
        connection.route_command(cmd("PING"), RoutingInfo::SingleNode(primary)).await
    }

    fn verdict(error: &RedisError) -> Verdict {
        match error.kind() {
            ErrorKind::Io
            | ErrorKind::ClusterConnectionNotFound
            | ErrorKind::Server(
                ServerErrorKind::ReadOnly
                | ServerErrorKind::Moved
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::Ask,
            ) => Verdict::Renew,
            _ => Verdict::Keep,
        }
    }
}

/// The node that a redirect names.
struct Node {
    connection: ClusterConnection,
    host: String,
    port: u16,
    /// The slot is still on its way there: it must be asked for explicitly, for each call.
    is_asking: bool,
}

impl Node {
    fn named_in(error: &RedisError, connection: &ClusterConnection) -> Option<Self> {
        let (address, _) = error.redirect_node()?;
        let (host, port) = address.rsplit_once(':')?;
        Some(Self {
            connection: connection.clone(),
            host: host.to_owned(),
            port: port.parse().ok()?,
            is_asking: error.kind() == ErrorKind::Server(ServerErrorKind::Ask),
        })
    }

    fn route(&self) -> SingleNodeRoutingInfo {
        SingleNodeRoutingInfo::ByAddress { host: self.host.clone(), port: self.port }
    }
}

impl ConnectionLike for Node {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let route = self.route();
            if !self.is_asking {
                return self.connection.route_command(command.clone(), RoutingInfo::SingleNode(route)).await;
            }
            let mut both = pipe();
            both.add_command(cmd("ASKING")).add_command(command.clone());
            let mut answers = self.connection.route_pipeline(both, 0, 2, route).await?;
            answers.pop().unwrap_or(Value::Nil).extract_error()
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let route = self.route();
            self.connection.route_pipeline(commands.clone(), offset, count, route).await
        })
    }

    fn get_db(&self) -> i64 {
        0
    }
}
