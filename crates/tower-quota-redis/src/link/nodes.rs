//! A connection to all nodes of a cluster, and the owners of slots that it cannot reach.
//!
//! Without a connection to the owner, the client sends a call to another node. That node sends it elsewhere, and then
//! the client asks one node for the slots and all of them for a sign of life. So once an owner was not to be reached,
//! no call for it goes through the client until it answers on a connection of its own: looks at it have pauses that
//! double, and a dead owner costs the other nodes nothing. A successor is found by [`Cluster`](super::cluster::Cluster).

use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use redis::cluster_async::ClusterConnection;
use redis::{ConnectionInfo, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};

use super::attempts::pause_after;
use super::server::{Dialer, with_address};
use crate::now::now;
use crate::script::{self, Call};

#[derive(Clone)]
pub(crate) struct Nodes {
    pub(super) client: ClusterConnection,
    shared: Arc<Shared>,
}

struct Shared {
    /// How to connect to a node, except for its address.
    node: ConnectionInfo,
    node_timeout: Duration,
    absent: Mutex<Vec<Absent>>,
}

/// An owner that the client could not reach.
struct Absent {
    /// Host and port, as other nodes name it.
    address: String,
    /// What they answer in its place.
    error: RedisError,
    /// Keys that stand for its partitions.
    partitions: Vec<String>,
    looks: u32,
    next_look: Instant,
}

impl Nodes {
    pub(super) fn new(client: ClusterConnection, node: ConnectionInfo, node_timeout: Duration) -> Self {
        Self { client, shared: Arc::new(Shared { node, node_timeout, absent: Mutex::default() }) }
    }

    /// Runs the script once on the partition that a key stands for.
    pub(super) async fn run(&mut self, key: &str, call: &Call) -> RedisResult<Value> {
        self.shared.look_for_owner(key).await?;
        let answer = self.send(key, call).await;
        match &answer {
            Err(error) if has_moved(error) && !self.shared.is_absent(key, error) => {}
            _ => return answer,
        }
        // The client asks for the slots before this.
        let answer = self.send(key, call).await;
        if let Err(error) = &answer
            && has_moved(error)
            && !self.shared.is_absent(key, error)
        {
            self.shared.add_absent(key, error);
        }
        answer
    }

    async fn send(&mut self, key: &str, call: &Call) -> RedisResult<Value> {
        // A node's error may also come as a value.
        script::run(&mut self.client, key, call).await.and_then(Value::extract_error)
    }
}

impl Shared {
    /// Fails if the owner of a partition is absent and does not answer now. Few look: the others fail at once.
    async fn look_for_owner(self: &Arc<Self>, key: &str) -> RedisResult<()> {
        let (address, error) = {
            let mut absent = self.lock();
            let Some(owner) = absent.iter_mut().find(|owner| owner.partitions.iter().any(|known| known == key)) else {
                return Ok(());
            };
            if now() < owner.next_look {
                return Err(owner.error.clone());
            }
            owner.next_look = now() + pause_after(owner.looks);
            owner.looks = owner.looks.saturating_add(1);
            (owner.address.clone(), owner.error.clone())
        };
        let shared = Arc::clone(self);
        // A task: connecting may take longer than the caller waits.
        let look = tokio::spawn(async move {
            let is_back = shared.answers(&address).await;
            if is_back {
                shared.lock().retain(|owner| owner.address != address);
            }
            is_back
        });
        if look.await.unwrap_or(false) { Ok(()) } else { Err(error) }
    }

    /// Returns whether a node connects, or cannot be looked at from here.
    async fn answers(&self, address: &str) -> bool {
        // A node without a name of its own has the host of the node that names it, which is not known here.
        let Some((host, Ok(port))) = address.rsplit_once(':').map(|(host, port)| (host, port.parse())) else {
            return true;
        };
        let node = with_address(self.node.clone(), host.to_owned(), port);
        match Dialer::new(node, self.node_timeout) {
            Ok(dialer) if !host.is_empty() => dialer.dial().await.is_ok(),
            _ => true,
        }
    }

    /// Returns whether the owner that an error names is known to be absent. If so, the partition is noted as one of its.
    fn is_absent(&self, key: &str, error: &RedisError) -> bool {
        let mut absent = self.lock();
        let address = error.redirect_node().map(|(address, _)| address);
        let Some(owner) = absent.iter_mut().find(|owner| Some(owner.address.as_str()) == address) else { return false };
        if !owner.partitions.iter().any(|known| known == key) {
            owner.partitions.push(key.to_owned());
        }
        true
    }

    fn add_absent(&self, key: &str, error: &RedisError) {
        let Some((address, _)) = error.redirect_node() else { return };
        self.lock().push(Absent {
            address: address.to_owned(),
            error: error.clone(),
            partitions: vec![key.to_owned()],
            looks: 1,
            next_look: now() + pause_after(0),
        });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Absent>> {
        // No change is ever left half done.
        self.absent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a node has sent a call elsewhere for good.
fn has_moved(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::Moved)
}
