//! A real Redis Cluster on free ports.

use std::collections::BTreeSet;
use std::io;

use crate::process::{free_port, start_with_retries};
use crate::redis_server::RedisServer;
use crate::tls::TlsFiles;
use crate::wait::wait_until;

/// All slots, divided evenly among the primaries.
const SLOTS: usize = 16_384;
const PRIMARIES: usize = 3;
/// The flags of the primary that is asked for its view.
const OWN_PRIMARY: &str = "myself,master";
const NODE_SETTINGS: &str = "cluster-enabled yes
cluster-node-timeout 500
cluster-replica-validity-factor 0
cluster-require-full-coverage no
repl-diskless-sync-delay 0
";

/// Three primaries (nodes 0 to 2) and a replica of each (3 to 5). All are killed when dropped.
///
/// A node that is silent for half a second counts as down, and its replica takes over within a second or two. A primary
/// that is down does not stop the others.
///
/// # Panics
/// All methods panic when `redis-server` is not installed, or when an operation takes more than 30 s: a test that needs a
/// cluster must not pass without it.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
    /// The TLS ports of the nodes. Empty without TLS.
    tls_ports: Vec<u16>,
}

impl RedisCluster {
    /// Starts a cluster, and waits until all nodes report it as healthy, with replicas that are in sync.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(None)
    }

    /// Starts a cluster with TLS between nodes, and for clients on further ports.
    ///
    /// The certificate is that of `files`. Redirections that clients get on these ports lead to ports with TLS.
    #[must_use]
    pub fn start_tls(files: &TlsFiles) -> Self {
        Self::start_with(Some(files))
    }

    fn start_with(tls: Option<&TlsFiles>) -> Self {
        let mut cluster = Self {
            nodes: Vec::new(),
            tls_ports: Vec::new(),
        };
        (0..2 * PRIMARIES).for_each(|_| cluster.add_node(tls));
        for i in 0..PRIMARIES {
            cluster.execute(i, &format!("CLUSTER SET-CONFIG-EPOCH {}", i + 1));
            // `ADDSLOTSRANGE` would be shorter, and needs Redis 7.
            cluster.execute(i, &format!("CLUSTER ADDSLOTS {}", slots_of(i)));
        }
        for i in 1..2 * PRIMARIES {
            // Nodes know each other by the port with TLS.
            let port = cluster
                .tls_ports
                .get(i)
                .copied()
                .unwrap_or(cluster.nodes[i].port());
            cluster.execute(0, &format!("CLUSTER MEET 127.0.0.1 {port}"));
        }
        cluster.wait_for_all("the nodes have met", |info| {
            info.contains("cluster_known_nodes:6")
        });
        for primary in 0..PRIMARIES {
            let id = cluster.id(primary);
            // This works before the replica knows its primary's slots.
            cluster.execute(primary + PRIMARIES, &format!("CLUSTER REPLICATE {id}"));
        }
        cluster.wait_for_all("the cluster is healthy", |info| {
            info.contains("cluster_state:ok")
                && info.contains("cluster_slots_ok:16384")
                && info.contains("cluster_size:3")
        });
        for replica in &cluster.nodes[PRIMARIES..] {
            wait_until("a replica is in sync", || {
                replica.replicates("master_link_status:up")
            });
        }
        cluster.wait_until_listed();
        cluster
    }

    /// Returns the URLs of all nodes.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }

    /// Returns the `rediss://` URLs of the nodes. There are none without TLS.
    #[must_use]
    pub fn tls_urls(&self) -> Vec<String> {
        self.tls_ports
            .iter()
            .map(|port| format!("rediss://127.0.0.1:{port}/"))
            .collect()
    }

    /// Returns a node, to pause or inspect it.
    #[must_use]
    pub fn node(&self, i: usize) -> &RedisServer {
        &self.nodes[i]
    }

    /// Kills a node, as a crash would.
    pub fn kill(&mut self, i: usize) {
        self.nodes[i].kill();
    }

    /// Restarts a killed node. It still knows the cluster, and has lost its keys.
    pub fn start_again(&mut self, i: usize) {
        self.nodes[i].start_again();
    }

    /// Returns the slot of a key.
    #[must_use]
    pub fn slot(&self, key: &str) -> u16 {
        let mut slot = None;
        // Any node that is up can answer.
        wait_until("a node returns the slot of a key", || {
            slot = self
                .nodes
                .iter()
                .find_map(|node| number(&node.command(&format!("CLUSTER KEYSLOT {key}")).ok()?));
            slot.is_some()
        });
        slot.unwrap_or_default()
    }

    /// Returns the node that serves a slot, by its own account.
    #[must_use]
    pub fn owner(&self, slot: u16) -> Option<usize> {
        (0..self.nodes.len()).find(|&i| self.shows(i, OWN_PRIMARY, slot))
    }

    /// Waits until another node than the dead one owns a slot and serves it.
    pub fn wait_for_promotion(&self, slot: u16, dead: usize) {
        wait_until("a replica has taken over", || {
            (0..self.nodes.len()).filter(|&i| i != dead).any(|i| {
                self.shows(i, OWN_PRIMARY, slot)
                    && self.nodes[i]
                        .command("CLUSTER INFO")
                        .is_ok_and(|info| info.contains("cluster_state:ok"))
            })
        });
    }

    /// Waits until all other nodes than the dead one know who serves a slot.
    ///
    /// Until then, a client that asks a node with an older view is led back to the dead node.
    pub fn wait_for_agreement(&self, slot: u16, dead: usize) {
        let owner = self.owner(slot).map(|owner| self.id(owner));
        let owner = owner.unwrap_or_default();
        wait_until("all nodes know the owner of a slot", || {
            (0..self.nodes.len())
                .filter(|&i| i != dead)
                .all(|i| self.shows(i, &owner, slot))
        });
    }

    /// Moves a slot and its keys to another primary, as `redis-cli --cluster reshard` does.
    pub fn move_slot(&self, slot: u16, to: usize) {
        let Some(moving) = self.begin_move(slot, to) else {
            return;
        };
        wait_until("all keys of a slot have moved", || {
            let Ok(keys) = moving.keys_left(20) else {
                return false;
            };
            if !keys.is_empty() {
                // The next round finds the keys that did not move.
                let _ = moving.carry(&keys);
            }
            keys.is_empty()
        });
        moving.end();
    }

    /// Begins to move a slot to another primary. `None` if that has it already, or no node has it.
    ///
    /// From now on the old owner redirects clients there for each key that it does not have.
    #[must_use]
    pub fn begin_move(&self, slot: u16, to: usize) -> Option<SlotMove<'_>> {
        let from = self.owner(slot).filter(|&from| from != to)?;
        let (source, target) = (self.id(from), self.id(to));
        self.execute(to, &format!("CLUSTER SETSLOT {slot} IMPORTING {source}"));
        self.execute(from, &format!("CLUSTER SETSLOT {slot} MIGRATING {target}"));
        Some(SlotMove {
            cluster: self,
            slot,
            from,
            to,
            target,
        })
    }

    /// Waits until all nodes agree on the owners of all slots.
    ///
    /// Call it before slots move to a node that has given some away: a node that does not know of the earlier move yet
    /// could undo it.
    pub fn settle(&self) {
        wait_until("all nodes agree on the slots", || {
            let views = self.nodes.iter().map(|node| node.command("CLUSTER NODES"));
            let Ok(views) = views.collect::<io::Result<Vec<String>>>() else {
                return false;
            };
            let mut views = views.iter().map(|view| assignments(view));
            // A node without an answer shows no slots.
            let Some(first) = views.next().filter(|view| !view.is_empty()) else {
                return false;
            };
            views.all(|view| view == first)
        });
    }

    /// Returns whether, in the view of `node`, a slot belongs to the node with this id or these flags.
    fn shows(&self, node: usize, owner: &str, slot: u16) -> bool {
        let view = self.nodes[node].command("CLUSTER NODES");
        view.unwrap_or_default().lines().any(|line| {
            // Behind the id, the address and the flags, a line may name other nodes.
            line.split_whitespace().take(3).any(|word| word == owner) && holds(line, slot)
        })
    }

    /// Starts a node without a cluster.
    fn add_node(&mut self, tls: Option<&TlsFiles>) {
        let (node, tls_port) = start_with_retries("redis-server", || {
            let tls = match tls {
                Some(files) => Some((files, free_port()?)),
                None => None,
            };
            let of_tls = tls.map(|(files, port)| files.node_settings(port));
            let settings = format!("{NODE_SETTINGS}{}", of_tls.unwrap_or_default());
            let node = RedisServer::try_start("port", &settings, &[])?;
            Ok((node, tls.map(|(_, port)| port)))
        });
        self.nodes.push(node);
        self.tls_ports.extend(tls_port);
    }

    fn id(&self, i: usize) -> String {
        let reply = self.execute(i, "CLUSTER MYID");
        reply.lines().nth(1).unwrap_or_default().to_owned()
    }

    /// Sends a command until it succeeds: nodes may need a moment to learn of each other.
    fn execute(&self, i: usize, command: &str) -> String {
        let mut reply = String::new();
        wait_until(command, || {
            reply = answer(&self.nodes[i], command).unwrap_or_default();
            !reply.is_empty()
        });
        reply
    }

    fn wait_for_all(&self, what: &str, holds: impl Fn(&str) -> bool) {
        for node in &self.nodes {
            wait_until(what, || {
                node.command("CLUSTER INFO").is_ok_and(|info| holds(&info))
            });
        }
    }

    /// Waits until all nodes list all others to clients.
    ///
    /// A replica is not listed before something was replicated to it. Nodes learn of that one by one, so until then
    /// clients would find replicas come and go, and dial them again and again.
    fn wait_until_listed(&self) {
        // Replicated even without keys.
        (0..PRIMARIES).for_each(|primary| drop(self.execute(primary, "FLUSHALL")));
        let ids: Vec<String> = (0..self.nodes.len()).map(|i| self.id(i)).collect();
        wait_until("all nodes list all others", || {
            let lists_all = |slots: &str| ids.iter().all(|id| slots.contains(id.as_str()));
            self.nodes.iter().all(|node| {
                node.command("CLUSTER SLOTS")
                    .is_ok_and(|slots| lists_all(&slots))
            })
        });
    }
}

/// A slot that moves from one primary to another.
#[derive(Debug)]
pub struct SlotMove<'a> {
    cluster: &'a RedisCluster,
    slot: u16,
    from: usize,
    to: usize,
    /// The new owner's id.
    target: String,
}

impl SlotMove<'_> {
    /// Returns some of the keys that the old owner still has. They must be text without spaces.
    ///
    /// # Errors
    /// Returns an error when the old owner does not answer, or with an error.
    pub fn keys_left(&self, most: usize) -> io::Result<Vec<String>> {
        let Self { slot, from, .. } = self;
        let command = format!("CLUSTER GETKEYSINSLOT {slot} {most}");
        let reply = answer(&self.cluster.nodes[*from], &command)?;
        // Behind the count, each key follows its length.
        let keys = reply.lines().skip(2).step_by(2);
        Ok(keys.map(str::to_owned).collect())
    }

    /// Moves these keys.
    ///
    /// # Errors
    /// Returns an error when a node does not answer, or with an error, as when the new owner has
    /// such a key (`BUSYKEY`).
    pub fn carry(&self, keys: &[String]) -> io::Result<()> {
        let (nodes, keys) = (&self.cluster.nodes, keys.join(" "));
        let port = nodes[self.to].port();
        let command = format!("MIGRATE 127.0.0.1 {port} \"\" 0 5000 KEYS {keys}");
        answer(&nodes[self.from], &command).map(drop)
    }

    /// Assigns the slot to its new owner. No key may be left.
    pub fn end(self) {
        let Self {
            cluster,
            slot,
            from,
            to,
            target,
        } = self;
        // The new owner comes first: otherwise the two would redirect clients to each other. A late message of the old
        // owner can undo the change, so the command is repeated until all primaries have it.
        for node in [to, from].into_iter().chain(0..PRIMARIES) {
            wait_until("all primaries know the new owner", || {
                cluster.shows(node, &target, slot) || {
                    cluster.execute(node, &format!("CLUSTER SETSLOT {slot} NODE {target}"));
                    cluster.shows(to, &target, slot) && cluster.shows(node, &target, slot)
                }
            });
        }
    }
}

/// Sends a command, and turns the error of the node into an error.
fn answer(node: &RedisServer, command: &str) -> io::Result<String> {
    let reply = node.command(command)?;
    if reply.is_empty() || reply.starts_with('-') {
        return Err(io::Error::other(reply));
    }
    Ok(reply)
}

/// Returns the numbers of a primary's slots, with spaces between.
fn slots_of(primary: usize) -> String {
    let slots = primary * SLOTS / PRIMARIES..(primary + 1) * SLOTS / PRIMARIES;
    let slots: Vec<String> = slots.map(|slot| slot.to_string()).collect();
    slots.join(" ")
}

/// Returns the id and the slots of each node, from the output of `CLUSTER NODES`.
fn assignments(view: &str) -> BTreeSet<Vec<&str>> {
    let assignment = |line| {
        let words = str::split_whitespace(line).enumerate();
        let is_own = |(i, word): &(usize, &str)| *i == 0 || *i >= 8 && !word.starts_with('[');
        words.filter(is_own).map(|(_, word)| word).collect()
    };
    // The first line is the length of the reply.
    view.lines().skip(1).map(assignment).collect()
}

/// Returns whether a line of `CLUSTER NODES` gives its node this slot: `ID ADDRESS FLAGS ... STATE 0-5460 7000`.
fn holds(line: &str, slot: u16) -> bool {
    line.split_whitespace().skip(8).any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        matches!((first.parse::<u16>(), last.parse::<u16>()), (Ok(first), Ok(last)) if first <= slot && slot <= last)
    })
}

/// Parses an integer reply, such as `:123`.
fn number(reply: &str) -> Option<u16> {
    reply.trim().strip_prefix(':')?.parse().ok()
}
