//! Connects to a Redis Cluster through the cluster connection of the client.
//!
//! 1. The link repeats a call only after `MOVED`, because a node that answers `MOVED` has not run the call.
//! 2. The link does not follow `ASK`. At the new node, keys that have not moved yet look missing, so clients over their
//!    limit would be admitted.
//! 3. A silent node never answers `MOVED`. After an unanswered call, the link asks another node for the slots, on the
//!    existing connections. If the owners have changed, a new client learns the slots from the successor.
//! 4. A client without nodes would connect for each call, so the link drops the client after many unanswered calls.

use core::time::Duration;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use redis::aio::PubSub;
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
use super::{Certificates, Provider, within};

const SLOTS_TIMEOUT: Duration = Duration::from_millis(100);
const ASK_ANOTHER_AFTER: Duration = Duration::from_millis(25);

pub(crate) struct Cluster {
    nodes: Vec<ConnectionInfo>,
    #[cfg_attr(
        not(feature = "tls"),
        expect(dead_code, reason = "only TLS needs certificates")
    )]
    certificates: Certificates,
    node_timeout: Duration,
    credentials: Option<Provider>,
}

type Owners = Vec<OwnedRange>;

type OwnedRange = (i64, i64, Vec<u8>);

#[derive(Clone)]
pub(crate) struct Connected {
    client: ClusterConnection,
    owners: Arc<Owners>,
}

impl Cluster {
    pub(super) fn new(
        nodes: Vec<ConnectionInfo>,
        certificates: Certificates,
        node_timeout: Duration,
        credentials: Option<Provider>,
    ) -> RedisResult<Self> {
        let cluster = Self {
            nodes,
            certificates,
            node_timeout,
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
        builder
            // The client would repeat a call that the server may have run, which would count twice.
            .retries(0)
            .connection_timeout(self.node_timeout)
            // The store bounds its calls, but the client's own requests need a bound too.
            .response_timeout(self.node_timeout)
            .overall_response_timeout(Some(self.node_timeout))
            .tcp_settings(TcpSettings::default().set_nodelay(true))
            .build()
    }

    fn server(&self, node: ConnectionInfo) -> RedisResult<Server> {
        Server::new(node, self.node_timeout, self.credentials.clone())
    }

    async fn connect(&self, node: ConnectionInfo, owners: Owners) -> RedisResult<Connected> {
        let client = self.client(vec![node])?.get_async_connection().await?;
        Ok(Connected {
            client,
            owners: Arc::new(owners),
        })
    }

    async fn first_to_answer(&self) -> RedisResult<(ConnectionInfo, Owners)> {
        let mut asked = JoinSet::new();
        for node in &self.nodes {
            let asking = ask_node(node.clone(), self.server(node.clone()));
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
    type Connection = Connected;

    /// The number is 1, because the answers of other nodes say little about a silent node.
    const DOUBTED_AFTER: u32 = 1;

    async fn dial(&self) -> RedisResult<Connected> {
        // Connect through a node that answers, because the client would wait for silent nodes.
        let (node, owners) = self.first_to_answer().await?;
        self.connect(node, owners).await
    }

    async fn replace(&self, doubtful: Connected) -> RedisResult<Option<Connected>> {
        let slots = within(SLOTS_TIMEOUT, "no answer in time", doubtful.ask_for_slots()).await?;
        let owners = owners_in(&slots);
        if *doubtful.owners == owners {
            return Ok(None);
        }
        let connected = match (successor_in(&slots, &doubtful.owners), self.nodes.first()) {
            (Some(address), Some(like)) => {
                self.connect(super::at_address(like.clone(), address), owners)
                    .await
            }
            _ => self.dial().await,
        };
        connected.map(Some)
    }

    /// Connects to any node, because Pub/Sub reaches all nodes.
    async fn subscriber(&self) -> RedisResult<PubSub> {
        let (node, _) = self.first_to_answer().await?;
        self.server(node)?.subscriber().await
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
}

impl Connected {
    async fn ask_for_slots(&self) -> RedisResult<Value> {
        let mut asked = JoinSet::new();
        let mut last = RedisError::from((ErrorKind::Io, "no node of the cluster answers"));
        let start = usize::try_from(RandomState::new().hash_one(()) % 1024).unwrap_or_default();
        let primary =
            |slot| SingleNodeRoutingInfo::SpecificNode(Route::new(slot, SlotAddr::Master));
        let primaries = slot_of_each_primary(&self.owners, start)
            .into_iter()
            .map(primary);
        // Add any node at the end, in case the owners are unknown.
        let mut nodes = primaries.chain([SingleNodeRoutingInfo::Random]);
        loop {
            let node = nodes.next();
            let is_last = node.is_none();
            if let Some(node) = node {
                let mut client = self.client.clone();
                asked.spawn(async move {
                    client
                        .route_command(ask_for_slots(), RoutingInfo::SingleNode(node))
                        .await
                });
            }
            let patience = if is_last {
                SLOTS_TIMEOUT
            } else {
                ASK_ANOTHER_AFTER
            };
            match tokio::time::timeout(patience, asked.join_next()).await {
                Ok(Some(Ok(answer))) => match answer.and_then(Value::extract_error) {
                    Ok(slots) => return Ok(slots),
                    Err(error) => last = error,
                },
                Ok(None) if is_last => return Err(last),
                // Too late, or stopped with its runtime.
                _ => {}
            }
        }
    }
}

fn slot_of_each_primary(owners: &Owners, start: usize) -> Vec<u16> {
    let mut primaries: Vec<(&[u8], u16)> = Vec::new();
    for (first, _, id) in owners {
        if let Ok(slot) = u16::try_from(*first)
            && primaries.iter().all(|(known, _)| known != id)
        {
            primaries.push((id, slot));
        }
    }
    let count = primaries.len().max(1);
    primaries.rotate_left(start % count);
    primaries.into_iter().map(|(_, slot)| slot).collect()
}

async fn ask_node(
    node: ConnectionInfo,
    server: RedisResult<Server>,
) -> RedisResult<(ConnectionInfo, Owners)> {
    let mut connection = server?.dial().await?;
    let slots = ask_for_slots().query_async(&mut connection).await?;
    Ok((node, owners_in(&slots)))
}

fn ask_for_slots() -> Cmd {
    let mut command = redis::cmd("CLUSTER");
    command.arg("SLOTS");
    command
}

fn owners_in(slots: &Value) -> Owners {
    let mut owners: Owners = ranges_in(slots).map(|(range, _)| range).collect();
    owners.sort_unstable();
    owners
}

fn successor_in(slots: &Value, known: &Owners) -> Option<Address> {
    ranges_in(slots)
        .filter(|(range, _)| !known.contains(range))
        .find_map(|(_, address)| address)
}

/// The host of a primary may be unknown.
fn ranges_in(slots: &Value) -> impl Iterator<Item = (OwnedRange, Option<Address>)> {
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
        let host = match host {
            Value::BulkString(host) if !host.is_empty() && host != b"?" => {
                String::from_utf8(host.clone()).ok()
            }
            _ => None,
        };
        Some((
            (*first, *last, id.clone()),
            host.zip(u16::try_from(*port).ok()),
        ))
    })
}

#[cfg(test)]
mod tests {
    use redis::IntoConnectionInfo;
    use tower_quota_dev::RedisCluster;

    use super::*;

    #[test]
    fn each_primary_is_asked_once() {
        let owners = [
            (0, 99, "a"),
            (100, 199, "b"),
            (200, 299, "a"),
            (300, 399, "c"),
        ];
        let owners: Owners = owners
            .iter()
            .map(|(first, last, id)| (*first, *last, id.as_bytes().to_vec()))
            .collect();
        for (start, slots) in [(0, [0, 100, 300]), (1, [100, 300, 0]), (5, [300, 0, 100])] {
            assert_eq!(slot_of_each_primary(&owners, start), slots, "{start}");
        }
        assert!(slot_of_each_primary(&Owners::new(), 7).is_empty());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn silent_primary_hides_no_slots() {
        let servers = RedisCluster::start();
        let nodes = servers
            .urls()
            .into_iter()
            .map(|url| url.into_connection_info().unwrap())
            .collect();
        let connected = Cluster::new(nodes, Certificates::default(), Duration::from_secs(5), None)
            .unwrap()
            .dial()
            .await
            .unwrap();
        servers.node(0).pause();
        for _ in 0..20 {
            let slots = tokio::time::timeout(SLOTS_TIMEOUT, connected.ask_for_slots())
                .await
                .unwrap()
                .unwrap();
            assert!(ranges_in(&slots).count() >= 3);
        }
        servers.node(0).resume();
    }

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
