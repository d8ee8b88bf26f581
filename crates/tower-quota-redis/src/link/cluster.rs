//! A Redis Cluster, through the client's own cluster connection.
//!
//! 1. The client repeats nothing: what it takes for a lost connection may have been counted. A call that a node sends
//!    elsewhere for good (`MOVED`) has not been run. The client then asks for the slots, and the call is sent once
//!    more. If that fails too, the owner is not to be reached: as with one server, there is no connection.
//! 2. `ASK` is not followed. It says that one key was moved to another node already. Keys that are not moved yet look
//!    missing there: clients over their limit would be admitted again, and entries written for them would block the keys
//!    that follow. So nothing is decided while a slot is moved.
//! 3. The client handles a lost node itself: it dials that node alone, and sends calls to its replica meanwhile.
//! 4. A node that is silent sends nothing elsewhere, so its successor must be looked for. When a call has no answer,
//!    another node is asked for the slots, on the connection there is. Only if they have other owners than when the
//!    client was made, another client takes its place. So a dead node costs the healthy ones no connection.
//! 5. A client that has lost all nodes connects anew for each call. It is dropped when many calls in a row have no
//!    answer, and attempts to make another have pauses that double.

use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::io::tcp::TcpSettings;
use redis::{Cmd, ConnectionInfo, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::task::JoinSet;

use super::backend::{Backend, Verdict};
use super::server::Dialer;
use crate::script::{self, Call};

/// The longest that a connected node may take to report the slots' owners. Short, to find a silent node soon.
const SLOTS_TIMEOUT: Duration = Duration::from_millis(100);

pub(crate) struct Cluster {
    nodes: Vec<ConnectionInfo>,
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only TLS needs certificates"))]
    trust: Option<Vec<u8>>,
    node_timeout: Duration,
    /// The owners of the slots when the last client was made.
    owners: Mutex<Owners>,
}

/// Ranges of slots, each with the id of the primary that owns it, in order.
type Owners = Vec<(i64, i64, Vec<u8>)>;

impl Cluster {
    /// Creates the backend. `node_timeout` bounds connecting to a node, and requests that the client makes by itself.
    pub(super) fn new(nodes: Vec<ConnectionInfo>, trust: Option<Vec<u8>>, node_timeout: Duration) -> RedisResult<Self> {
        let cluster = Self { nodes, trust, node_timeout, owners: Mutex::default() };
        // Finds nodes that do not belong together now.
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
            .connection_timeout(self.node_timeout)
            // Each call has the store's deadline. This bounds requests that the client makes by itself.
            .response_timeout(self.node_timeout)
            .overall_response_timeout(Some(self.node_timeout))
            .tcp_settings(TcpSettings::default().set_nodelay(true))
            .build()
    }

    /// Returns the first of the nodes to answer, and the owners of the slots as it knows them.
    async fn first_to_answer(&self) -> RedisResult<(ConnectionInfo, Owners)> {
        let mut asked = JoinSet::new();
        for node in &self.nodes {
            let asking = ask_node(node.clone(), self.node_timeout);
            asked.spawn(tokio::time::timeout(self.node_timeout, asking));
        }
        let mut last = RedisError::from((ErrorKind::Io, "no node of the cluster answers"));
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok(Ok(Ok(found))) => return Ok(found),
                Ok(Ok(Err(error))) => last = error,
                // Too late, or stopped with its runtime.
                Ok(Err(_)) | Err(_) => {}
            }
        }
        Err(last)
    }
}

impl Backend for Cluster {
    type Connection = ClusterConnection;

    /// The other nodes' answers say nothing about one that is silent.
    const DOUBTED_AFTER: u32 = 1;

    async fn dial(&self) -> RedisResult<ClusterConnection> {
        // The client would wait for all nodes, also for a silent one. One is enough to ask for the rest.
        let (node, owners) = self.first_to_answer().await?;
        let connection = self.client(vec![node])?.get_async_connection().await?;
        *self.owners.lock().unwrap_or_else(PoisonError::into_inner) = owners;
        Ok(connection)
    }

    async fn replace(&self, mut doubtful: ClusterConnection) -> RedisResult<Option<ClusterConnection>> {
        let any = RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random);
        let slots = tokio::time::timeout(SLOTS_TIMEOUT, doubtful.route_command(ask_for_slots(), any)).await;
        let slots = slots.unwrap_or_else(|_| Err((ErrorKind::Io, "no answer in time").into()));
        let owners = owners_in(slots.and_then(Value::extract_error)?);
        let is_known = *self.owners.lock().unwrap_or_else(PoisonError::into_inner) == owners;
        if is_known { Ok(None) } else { self.dial().await.map(Some) }
    }

    async fn run(connection: &mut ClusterConnection, key: &str, call: &Call) -> RedisResult<Value> {
        let answer = script::run(connection, key, call).await;
        if has_moved(&answer) { script::run(connection, key, call).await } else { answer }
    }

    fn verdict(error: &RedisError) -> Verdict {
        match error.kind() {
            ErrorKind::Io | ErrorKind::ClusterConnectionNotFound => Verdict::Doubt,
            ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::Moved | ServerErrorKind::ClusterDown) => {
                Verdict::Replace
            }
            _ => Verdict::Keep,
        }
    }
}

/// Returns whether a node has sent a call elsewhere.
fn has_moved(answer: &RedisResult<Value>) -> bool {
    let moved = ErrorKind::Server(ServerErrorKind::Moved);
    match answer {
        Err(error) => error.kind() == moved,
        // It may also come as a value.
        Ok(Value::ServerError(error)) => RedisError::from(error.clone()).kind() == moved,
        Ok(_) => false,
    }
}

/// Asks a node for the owners of the slots, on a connection of its own.
async fn ask_node(node: ConnectionInfo, timeout: Duration) -> RedisResult<(ConnectionInfo, Owners)> {
    let mut connection = Dialer::new(node.clone(), timeout)?.dial().await?;
    let slots = ask_for_slots().query_async(&mut connection).await?;
    Ok((node, owners_in(slots)))
}

fn ask_for_slots() -> Cmd {
    let mut command = redis::cmd("CLUSTER");
    command.arg("SLOTS");
    command
}

/// Reads the reply to `CLUSTER SLOTS`: ranges with the primary first among their nodes.
fn owners_in(slots: Value) -> Owners {
    let Value::Array(ranges) = slots else { return Owners::new() };
    let owner_in = |range: &Value| match range {
        Value::Array(range) => match range.as_slice() {
            [Value::Int(first), Value::Int(last), Value::Array(primary), ..] => match primary.get(2) {
                Some(Value::BulkString(id)) => Some((*first, *last, id.clone())),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    let mut owners: Owners = ranges.iter().filter_map(owner_in).collect();
    owners.sort_unstable();
    owners
}
