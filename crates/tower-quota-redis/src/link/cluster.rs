//! A Redis Cluster, through the client's own cluster connection.
//!
//! 1. The client repeats nothing: what it takes for a lost connection may have been counted. A call that a node sends
//!    elsewhere for good (`MOVED`) has not been run, so that is followed, here, a few times.
//! 2. `ASK` is not followed. It says that one key has gone ahead to another node, and there the keys that have yet to
//!    come look as if they had never been: who has used up a limit would be let in again, and what would be written for
//!    them would be in the way of what comes. So nothing is decided while a slot is moved.
//! 3. The client learns of a new primary from nodes that answer. One that falls silent sends nobody elsewhere, so
//!    whenever a call or a probe fails, the whole connection is made anew, in the background, from one of the nodes given
//!    at first: that asks for the slots again. The old one serves the other nodes meanwhile. It asks for the slots itself
//!    only when a node sends it elsewhere.
//! 4. A client that has lost all nodes connects anew for each call, which for the probes of all partitions comes to
//!    hundreds of attempts a second; and once it has been told to ask for the slots again, it does so without pause. So
//!    it is given up when many calls in a row have no answer, and the probes share the attempts to make another.

use core::time::Duration;

use redis::aio::ConnectionLike;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::io::tcp::TcpSettings;
use redis::{
    Cmd, ConnectionInfo, ErrorKind, Pipeline, RedisError, RedisFuture, RedisResult, ServerErrorKind, Value, cmd,
};
use tokio::task::JoinSet;

use super::reach::{Reach, Verdict};
use super::server::Dialer;
use crate::script::{self, Call};

/// How often a call is sent after a slot that has moved. Once is the rule; a slot may move again meanwhile.
const MOST_REDIRECTS: usize = 3;

pub(crate) struct Cluster {
    nodes: Vec<ConnectionInfo>,
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "without TLS nobody need be trusted"))]
    trust: Option<Vec<u8>>,
    patience: Duration,
}

impl Cluster {
    pub(super) fn new(nodes: Vec<ConnectionInfo>, trust: Option<Vec<u8>>, patience: Duration) -> RedisResult<Self> {
        let cluster = Self { nodes, trust, patience };
        // Nodes that do not go together are found out now.
        cluster.client(cluster.nodes.clone())?;
        Ok(cluster)
    }

    fn client(&self, nodes: Vec<ConnectionInfo>) -> RedisResult<ClusterClient> {
        let builder = ClusterClient::builder(nodes);
        #[cfg(feature = "tls")]
        let builder = match &self.trust {
            Some(pem) => builder.certs(super::tls::trusting(pem)),
            None => builder,
        };
        builder
            .retries(0)
            .connection_timeout(self.patience)
            // Each call has the store's deadline. This bounds what the client asks on its own account.
            .response_timeout(self.patience)
            .overall_response_timeout(Some(self.patience))
            .tcp_settings(TcpSettings::default().set_nodelay(true))
            .build()
    }

    /// The first of the nodes to answer.
    async fn awake(&self) -> RedisResult<ConnectionInfo> {
        let mut greeted = JoinSet::new();
        for node in &self.nodes {
            let greeting = greet(node.clone(), self.patience);
            greeted.spawn(tokio::time::timeout(self.patience, greeting));
        }
        let mut last = RedisError::from((ErrorKind::Io, "no node of the cluster answers"));
        while let Some(answer) = greeted.join_next().await {
            match answer {
                Ok(Ok(Ok(node))) => return Ok(node),
                Ok(Ok(Err(error))) => last = error,
                // Too late, or stopped with its runtime.
                Ok(Err(_)) | Err(_) => {}
            }
        }
        Err(last)
    }
}

impl Reach for Cluster {
    type Connection = ClusterConnection;

    async fn dial(&self) -> RedisResult<ClusterConnection> {
        // The client would wait for all of them, also for one that has fallen silent. One is enough to ask for the rest.
        let node = self.awake().await?;
        self.client(vec![node])?.get_async_connection().await
    }

    async fn run(connection: &mut ClusterConnection, key: &str, call: &Call) -> RedisResult<Value> {
        let mut answer = script::run(connection, key, call).await;
        for _ in 0..MOST_REDIRECTS {
            let Some(mut node) = Node::named_in(&answer, connection) else { break };
            answer = script::run(&mut node, key, call).await;
        }
        answer
    }

    /// A node that stands in for the primary would answer a `PING` too; asked for the key, it says that it is not the one.
    /// The script uses this command as well, so the right to it is there.
    async fn ping(connection: &mut ClusterConnection, key: &str) -> RedisResult<Value> {
        let mut look = cmd("MGET");
        look.arg(key);
        let primary = SingleNodeRoutingInfo::SpecificNode(Route::with_key(key, SlotAddr::Master));
        let answer = connection.route_command(look, RoutingInfo::SingleNode(primary)).await;
        match answer.and_then(Value::extract_error) {
            // The right one, though the key has left it: that is no sickness.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::Ask) => Ok(Value::Nil),
            answer => answer,
        }
    }

    fn verdict(error: &RedisError) -> Verdict {
        match error.kind() {
            ErrorKind::Io | ErrorKind::ClusterConnectionNotFound => Verdict::Doubt,
            ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::Moved | ServerErrorKind::ClusterDown) => {
                Verdict::Renew
            }
            _ => Verdict::Keep,
        }
    }
}

/// Waits for a sign of life.
async fn greet(node: ConnectionInfo, patience: Duration) -> RedisResult<ConnectionInfo> {
    let mut connection = Dialer::new(node.clone(), patience)?.dial().await?;
    match cmd("PING").query_async::<Value>(&mut connection).await {
        Err(error) if error.code() != Some("NOPERM") => Err(error),
        _ => Ok(node),
    }
}

/// The node that `MOVED` names.
struct Node {
    connection: ClusterConnection,
    host: String,
    port: u16,
}

impl Node {
    /// The node that this answer says to ask instead.
    fn named_in(answer: &RedisResult<Value>, connection: &ClusterConnection) -> Option<Self> {
        let error = match answer {
            Err(error) => error.clone(),
            // It may also come as a value.
            Ok(Value::ServerError(error)) => error.clone().into(),
            Ok(_) => return None,
        };
        if error.kind() != ErrorKind::Server(ServerErrorKind::Moved) {
            return None;
        }
        let (address, _) = error.redirect_node()?;
        let (host, port) = address.rsplit_once(':')?;
        Some(Self { connection: connection.clone(), host: host.to_owned(), port: port.parse().ok()? })
    }

    fn route(&self) -> SingleNodeRoutingInfo {
        SingleNodeRoutingInfo::ByAddress { host: self.host.clone(), port: self.port }
    }
}

impl ConnectionLike for Node {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let route = RoutingInfo::SingleNode(self.route());
            self.connection.route_command(command.clone(), route).await
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
