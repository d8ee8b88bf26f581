//! Connects to a Redis Cluster through the cluster connection of the client.
//!
//! 1. The link repeats a call only after `MOVED`, because a node that answers `MOVED` has not run the call.
//! 2. The link does not follow `ASK`. At the new node, keys that have not moved yet look missing, so clients over their
//!    limit would be admitted.
//! 3. A silent node never answers `MOVED`. After an unanswered call, the link asks a random node for the slots, on an
//!    existing connection. If the owners have changed, a new client learns the slots from the successor.
//! 4. A client without nodes would connect for each call, so the link drops the client after many unanswered calls.
//! 5. A server or a balancer closes idle connections, and the client only notices at the next call to the node. After a
//!    silence of its partition, a call follows a `TIME`, and a lost connection replaces the client.

use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::io::tcp::TcpSettings;
use redis::{Cmd, ConnectionInfo, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::task::JoinSet;

use super::backend::{Backend, LinkConnection, Verdict};
use super::election::Address;
use super::request::LinkRequest;
use super::server::Server;
use super::{Certificates, Provider, with_credentials, within};
use crate::clock::now;
use crate::lock::locked;
use crate::slots;

/// The part of the connect timeout for each node of the client.
const NODE_SHARE: u32 = 4;
const SLOTS_TIMEOUT: Duration = Duration::from_millis(100);
/// The time after which a second node is asked. The time doubles for each further node.
const HEAD_START: Duration = Duration::from_millis(100);
/// The silence of a partition that makes a call check the connection. Servers close connections after
/// a second at the earliest.
const SILENCE: Duration = Duration::from_secs(1);

pub(crate) struct Cluster {
    nodes: Vec<ConnectionInfo>,
    #[cfg_attr(
        not(feature = "tls"),
        expect(dead_code, reason = "only TLS needs certificates")
    )]
    certificates: Certificates,
    connect_timeout: Duration,
    credentials: Option<Provider>,
}

type Owners = Vec<OwnedRange>;

type OwnedRange = (i64, i64, Vec<u8>);

#[derive(Clone)]
pub(crate) struct Connected {
    client: ClusterConnection,
    slots: Arc<Value>,
    connected_at: Instant,
    /// The last call of each partition.
    last_calls: Arc<Mutex<HashMap<u16, Instant>>>,
}

impl Cluster {
    pub(super) fn new(
        nodes: Vec<ConnectionInfo>,
        certificates: Certificates,
        connect_timeout: Duration,
        credentials: Option<Provider>,
    ) -> RedisResult<Self> {
        let cluster = Self {
            nodes,
            certificates,
            connect_timeout,
            credentials,
        };
        // Report nodes that do not belong together now.
        cluster.client(cluster.nodes.clone())?;
        Ok(cluster)
    }

    fn client(&self, nodes: Vec<ConnectionInfo>) -> RedisResult<ClusterClient> {
        let builder = ClusterClient::builder(nodes);
        #[cfg(feature = "tls")]
        let builder = match super::tls::of(&self.certificates) {
            Some(certificates) => builder.certs(certificates),
            None => builder,
        };
        #[cfg(feature = "credentials")]
        let builder = match self.credentials.clone() {
            Some(provider) => builder.set_credentials_provider(provider),
            None => builder,
        };
        let node_timeout = self.connect_timeout / NODE_SHARE;
        builder
            // The client would repeat a call that the server may have run, which would count twice.
            .retries(0)
            .connection_timeout(node_timeout)
            // The store bounds its calls, but the client's own requests need a bound too.
            .response_timeout(node_timeout)
            .overall_response_timeout(Some(node_timeout))
            .tcp_settings(TcpSettings::default().set_nodelay(true))
            .build()
    }

    fn server(&self, node: ConnectionInfo) -> RedisResult<Server> {
        Server::new(node, self.connect_timeout, self.credentials.clone())
    }

    async fn connect(&self, node: ConnectionInfo, slots: Value) -> RedisResult<Connected> {
        if is_nameless(&slots) {
            let announce = "the cluster does not name its nodes: set cluster-announce-hostname";
            return Err((ErrorKind::InvalidClientConfig, announce).into());
        }
        let client = self.client(vec![node])?.get_async_connection().await?;
        Ok(Connected {
            client,
            slots: Arc::new(slots),
            connected_at: now(),
            last_calls: Arc::default(),
        })
    }

    /// Asks one node after the other, because several handshakes at once slow each other down on a busy
    /// machine. A silent node only delays the next one.
    async fn first_to_answer(&self) -> RedisResult<(ConnectionInfo, Value)> {
        let mut asked = JoinSet::new();
        let (mut nodes, mut head_start) = (self.nodes.iter(), HEAD_START);
        let mut last = RedisError::from((ErrorKind::Io, "no node of the cluster answers"));
        loop {
            let node = nodes.next();
            if let Some(node) = node {
                let asking = ask_node(node.clone(), self.server(node.clone()));
                asked.spawn(tokio::time::timeout(self.connect_timeout, asking));
            }
            let answer = match node {
                Some(_) => tokio::time::timeout(head_start, asked.join_next()).await,
                None => Ok(asked.join_next().await),
            };
            head_start *= 2;
            match answer {
                Ok(Some(Ok(Ok(Ok(found))))) => return Ok(found),
                Ok(Some(Ok(Ok(Err(error))))) => last = error,
                Ok(None) if node.is_none() => return Err(last),
                // Too late, or stopped with its runtime.
                _ => {}
            }
        }
    }
}

impl Backend for Cluster {
    type Connection = Connected;

    /// The number is 1, because the answers of other nodes say little about a silent node.
    const DOUBTED_AFTER: u32 = 1;

    async fn dial(&self) -> RedisResult<Connected> {
        // Connect through a node that answers, because the client would wait for silent nodes.
        let (node, slots) = self.first_to_answer().await?;
        self.connect(node, slots).await
    }

    async fn replace(&self, doubtful: Connected) -> RedisResult<Option<Connected>> {
        let slots = within(SLOTS_TIMEOUT, "no answer in time", doubtful.ask_for_slots()).await?;
        let known = owners_in(&doubtful.slots);
        if owners_in(&slots) == known {
            return Ok(None);
        }
        let connected = match (successor_in(&slots, &known), self.nodes.first()) {
            (Some(address), Some(like)) => {
                self.connect(super::at_address(like.clone(), address), slots)
                    .await
            }
            _ => self.dial().await,
        };
        connected.map(Some)
    }

    async fn locate(&self, key: &str) -> RedisResult<ConnectionInfo> {
        let (node, slots) = self.first_to_answer().await?;
        let owner = owner_in(&slots, key).map(|(host, port)| {
            // A node without a known host has the host of the node that answered.
            let host = host.or_else(|| super::host_of(&node)).unwrap_or_default();
            super::at_address(node.clone(), (host, port))
        });
        with_credentials(
            owner.unwrap_or(node),
            self.credentials.as_ref(),
            self.connect_timeout,
        )
        .await
    }

    fn verdict(error: &RedisError) -> Verdict {
        match error.kind() {
            ErrorKind::Io | ErrorKind::ClusterConnectionNotFound => Verdict::Doubt,
            ErrorKind::Server(
                ServerErrorKind::ReadOnly | ServerErrorKind::Moved | ServerErrorKind::ClusterDown,
            ) => Verdict::Replace,
            _ => Verdict::Keep,
        }
    }
}

impl LinkConnection for Connected {
    async fn run(&mut self, key: &str, request: &impl LinkRequest) -> RedisResult<Value> {
        let answer = request.send(&mut self.client, key).await;
        // The client also returns errors as values.
        let answer = answer.and_then(Value::extract_error);
        let moved = ErrorKind::Server(ServerErrorKind::Moved);
        if answer.as_ref().is_err_and(|error| error.kind() == moved) && request.may_repeat() {
            request.send(&mut self.client, key).await
        } else {
            answer
        }
    }

    /// Sends `TIME` to the owner of a partition that was silent. A closed connection fails at once.
    async fn is_lost(&self, key: &str, _is_silent: bool, patience: Duration) -> bool {
        if key.is_empty() {
            return false;
        }
        let (slot, now) = (slots::slot_of(key), now());
        let last = locked(&self.last_calls).insert(slot, now);
        let last = last.unwrap_or(self.connected_at);
        if now.saturating_duration_since(last) < SILENCE {
            return false;
        }
        let owner = SingleNodeRoutingInfo::SpecificNode(Route::new(slot, SlotAddr::Master));
        let mut client = self.client.clone();
        // Every user has the right to call `TIME`, because the script does.
        let time = client.route_command(redis::cmd("TIME"), RoutingInfo::SingleNode(owner));
        match tokio::time::timeout(patience, time).await {
            Ok(Err(error)) => error.is_connection_dropped(),
            // The node is silent, which only a call may conclude.
            Ok(Ok(_)) | Err(_) => false,
        }
    }

    fn node_of(&self, key: &str) -> Option<String> {
        let (host, port) = owner_in(&self.slots, key)?;
        Some(format!("{}:{port}", host?))
    }
}

impl Connected {
    async fn ask_for_slots(&self) -> RedisResult<Value> {
        let mut client = self.client.clone();
        let node = RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random);
        let slots = client.route_command(ask_for_slots(), node).await?;
        slots.extract_error()
    }
}

async fn ask_node(
    node: ConnectionInfo,
    server: RedisResult<Server>,
) -> RedisResult<(ConnectionInfo, Value)> {
    let mut connection = server?.dial().await?;
    let slots = ask_for_slots().query_async(&mut connection).await?;
    Ok((node, slots))
}

fn ask_for_slots() -> Cmd {
    let mut command = redis::cmd("CLUSTER");
    command.arg("SLOTS");
    command
}

fn owners_in(slots: &Value) -> Owners {
    let mut owners: Owners = primaries_in(slots).map(|(range, ..)| range).collect();
    owners.sort_unstable();
    owners
}

fn successor_in(slots: &Value, known: &Owners) -> Option<Address> {
    primaries_in(slots)
        .filter(|(range, ..)| !known.contains(range))
        .find_map(|(_, host, port)| host_in(host).zip(u16::try_from(port).ok()))
}

/// Returns the host, if known, and the port of the primary that owns a key.
fn owner_in(slots: &Value, key: &str) -> Option<(Option<String>, u16)> {
    let slot = i64::from(slots::slot_of(key));
    let (_, host, port) =
        primaries_in(slots).find(|((first, last, _), ..)| (first..=last).contains(&&slot))?;
    Some((host_in(host), u16::try_from(port).ok()?))
}

/// Returns whether every primary has the name `?`, which a node without a host name has.
fn is_nameless(slots: &Value) -> bool {
    let mut hosts = primaries_in(slots).map(|(_, host, _)| host).peekable();
    let has_primaries = hosts.peek().is_some();
    has_primaries && hosts.all(|host| *host == Value::BulkString(b"?".to_vec()))
}

fn host_in(host: &Value) -> Option<String> {
    match host {
        Value::BulkString(host) if !host.is_empty() && host != b"?" => {
            String::from_utf8(host.clone()).ok()
        }
        _ => None,
    }
}

/// Returns each range of slots with the host and port of its primary.
fn primaries_in(slots: &Value) -> impl Iterator<Item = (OwnedRange, &Value, i64)> {
    let ranges = if let Value::Array(ranges) = slots {
        ranges.as_slice()
    } else {
        &[]
    };
    ranges.iter().filter_map(|range| {
        let Value::Array(range) = range else {
            return None;
        };
        let [
            Value::Int(first),
            Value::Int(last),
            Value::Array(primary),
            ..,
        ] = range.as_slice()
        else {
            return None;
        };
        let [host, Value::Int(port), Value::BulkString(id), ..] = primary.as_slice() else {
            return None;
        };
        Some(((*first, *last, id.clone()), host, *port))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successor_is_an_unknown_owner() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let range = |first, last, host, port, id| {
            let primary = Value::Array(vec![host, Value::Int(port), text(id)]);
            Value::Array(vec![Value::Int(first), Value::Int(last), primary])
        };
        let slots = |second| Value::Array(vec![second, range(0, 99, text("one"), 1, "a")]);
        let known = slots(range(100, 199, text("two"), 2, "b"));
        let owners = owners_in(&known);
        assert_eq!(owners, [(0, 99, b"a".to_vec()), (100, 199, b"b".to_vec())]);
        assert_eq!(successor_in(&known, &owners), None);
        let promoted = slots(range(100, 199, text("three"), 3, "c"));
        assert_eq!(
            successor_in(&promoted, &owners),
            Some(("three".to_owned(), 3))
        );
        for unknown in [text(""), text("?"), Value::Nil] {
            assert_eq!(
                successor_in(&slots(range(100, 199, unknown, 3, "c")), &owners),
                None
            );
        }
    }
}
