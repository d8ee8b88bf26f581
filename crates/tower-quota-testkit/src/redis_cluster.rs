//! A real Redis Cluster on free ports, gone when dropped.

use std::io;

use crate::process::{free_port, insist};
use crate::redis_server::RedisServer;
use crate::resp;
use crate::tls::TlsFiles;
use crate::wait::wait_until;

/// All slots, shared out evenly among the primaries.
const SLOTS: u16 = 16_384;
const PRIMARIES: usize = 3;

/// Three primaries and a replica of each: nodes 0 to 2 and 3 to 5. A node that is silent for half a second counts as
/// dead, and its replica takes over within a second or two. A primary that is down does not stop the others.
///
/// # Panics
/// All methods panic when `redis-server` (7.0 or later) is not installed, or the cluster does not do within 30 s what
/// it should: a test that needs a cluster must not pass without it.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
    /// The ports on which the nodes speak TLS, if they do.
    tls_ports: Vec<u16>,
}

impl RedisCluster {
    /// Starts a cluster and waits until all its nodes agree that it is sound and the replicas have caught up.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(None)
    }

    /// Starts a cluster whose nodes, with the certificate in these files, speak TLS with each other and on further ports
    /// with clients. Those who ask there are sent nowhere else.
    #[must_use]
    pub fn start_tls(files: &TlsFiles) -> Self {
        Self::start_with(Some(files))
    }

    fn start_with(tls: Option<&TlsFiles>) -> Self {
        let mut cluster = Self { nodes: Vec::new(), tls_ports: Vec::new() };
        let bus_ports: Vec<u16> = (0..2 * PRIMARIES).map(|_| cluster.add_node(tls)).collect();
        for (i, slots) in slot_ranges().enumerate() {
            cluster.tell(i, &format!("CLUSTER SET-CONFIG-EPOCH {}", i + 1));
            cluster.tell(i, &format!("CLUSTER ADDSLOTSRANGE {slots}"));
        }
        for (i, bus_port) in bus_ports.into_iter().enumerate().skip(1) {
            // Among themselves nodes go by the port that speaks TLS.
            let port = cluster.tls_ports.get(i).copied().unwrap_or(cluster.nodes[i].port());
            cluster.tell(0, &format!("CLUSTER MEET 127.0.0.1 {port} {bus_port}"));
        }
        cluster.wait_for_all("the nodes have met", |info| info.contains("cluster_known_nodes:6"));
        for primary in 0..PRIMARIES {
            let id = cluster.id(primary);
            // It may not have heard of its primary's slots yet, but knows it by name.
            cluster.tell(primary + PRIMARIES, &format!("CLUSTER REPLICATE {id}"));
        }
        cluster.wait_for_all("the cluster is sound", |info| {
            info.contains("cluster_state:ok")
                && info.contains("cluster_slots_ok:16384")
                && info.contains("cluster_size:3")
        });
        for replica in PRIMARIES..2 * PRIMARIES {
            cluster.wait_for_replica(replica);
        }
        cluster
    }

    /// The URLs of the nodes that are there.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }

    /// The `rediss://` URLs of the nodes: none unless they speak TLS.
    #[must_use]
    pub fn tls_urls(&self) -> Vec<String> {
        self.tls_ports.iter().map(|port| format!("rediss://127.0.0.1:{port}/")).collect()
    }

    /// A node, to pause it or to look at it.
    #[must_use]
    pub fn node(&self, i: usize) -> &RedisServer {
        &self.nodes[i]
    }

    /// Kills a node, as a crash would.
    pub fn kill(&mut self, i: usize) {
        self.nodes[i].kill();
    }

    /// Starts a killed node again. It remembers the cluster, not its keys.
    pub fn start_again(&mut self, i: usize) {
        self.nodes[i].start_again();
    }

    /// The slot of a key.
    #[must_use]
    pub fn slot(&self, key: &str) -> u16 {
        let mut slot = None;
        // Any node can tell.
        wait_until("a node tells a key's slot", || {
            slot = self.nodes.iter().find_map(|node| number(&node.command(&format!("CLUSTER KEYSLOT {key}")).ok()?));
            slot.is_some()
        });
        slot.unwrap_or_default()
    }

    /// The node that serves a slot, as a primary that is alive sees it.
    #[must_use]
    pub fn owner(&self, slot: u16) -> Option<usize> {
        (0..self.nodes.len()).find(|&i| {
            let own = self.nodes[i].command("CLUSTER NODES").unwrap_or_default();
            own.lines().find(|line| line.contains("myself,master")).is_some_and(|line| holds(line, slot))
        })
    }

    /// Waits until a slot has another owner than this one, and that one serves.
    pub fn wait_for_promotion(&self, slot: u16, dead: usize) {
        wait_until("a replica has taken over", || {
            (0..self.nodes.len()).filter(|&i| i != dead).any(|i| {
                let own = self.nodes[i].command("CLUSTER NODES").unwrap_or_default();
                own.lines().find(|line| line.contains("myself,master")).is_some_and(|line| holds(line, slot))
                    && self.nodes[i].command("CLUSTER INFO").is_ok_and(|info| info.contains("cluster_state:ok"))
            })
        });
    }

    /// Moves a slot and its keys to another primary, as `redis-cli --cluster reshard` does.
    pub fn move_slot(&self, slot: u16, to: usize) {
        let Some(moving) = self.begin_move(slot, to) else { return };
        wait_until("all keys of a slot have moved", || {
            let Ok(keys) = moving.keys_left(20) else { return false };
            if !keys.is_empty() {
                // What did not move is found again.
                let _ = moving.carry(&keys);
            }
            keys.is_empty()
        });
        moving.end();
    }

    /// Begins to move a slot to another primary: from now on clients are sent there for each key that is not here.
    /// `None` if it is there already, or nobody has it.
    #[must_use]
    pub fn begin_move(&self, slot: u16, to: usize) -> Option<SlotMove<'_>> {
        let from = self.owner(slot).filter(|&from| from != to)?;
        let (source, target) = (self.id(from), self.id(to));
        self.tell(to, &format!("CLUSTER SETSLOT {slot} IMPORTING {source}"));
        self.tell(from, &format!("CLUSTER SETSLOT {slot} MIGRATING {target}"));
        Some(SlotMove { cluster: self, slot, from, to, target })
    }

    /// Waits until all nodes agree who owns what. One that has not heard yet that a slot was moved can undo it, when
    /// the old owner is given other slots meanwhile: so settle before slots move to where some have come from.
    pub fn settle(&self) {
        wait_until("all nodes agree on the slots", || {
            let view = |node: &RedisServer| shares(&node.command("CLUSTER NODES").unwrap_or_default());
            let first = view(&self.nodes[0]);
            first.is_some() && self.nodes.iter().all(|node| view(node) == first)
        });
    }

    /// Whether a node believes that a slot belongs to the one with this id.
    fn gives(&self, node: usize, id: &str, slot: u16) -> bool {
        let view = self.nodes[node].command("CLUSTER NODES").unwrap_or_default();
        view.lines().find(|line| line.starts_with(id)).is_some_and(|line| holds(line, slot))
    }

    /// Starts a node that belongs to no cluster yet, and returns its port on the cluster bus.
    fn add_node(&mut self, tls: Option<&TlsFiles>) -> u16 {
        let (node, bus_port, tls_port) = insist("redis-server", || {
            let bus_port = free_port()?;
            let bus_option = bus_port.to_string();
            let mut options = vec!["--cluster-enabled", "yes", "--cluster-port", &bus_option];
            options.extend(["--cluster-node-timeout", "500", "--cluster-replica-validity-factor", "0"]);
            options.extend(["--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0"]);
            let tls = tls.map(|files| Ok::<_, io::Error>((files, free_port()?))).transpose()?;
            let speaking_tls = tls.map(|(files, port)| files.of_a_member(port)).unwrap_or_default();
            options.extend(speaking_tls.iter().map(String::as_str));
            Ok((RedisServer::try_start(&[], &options)?, bus_port, tls.map(|(_, port)| port)))
        });
        self.nodes.push(node);
        self.tls_ports.extend(tls_port);
        bus_port
    }

    fn id(&self, i: usize) -> String {
        let reply = self.tell(i, "CLUSTER MYID");
        reply.lines().nth(1).unwrap_or_default().to_owned()
    }

    /// Sends a command until it is carried out: nodes may need a moment to hear of each other.
    fn tell(&self, i: usize, command: &str) -> String {
        let mut reply = String::new();
        wait_until(command, || {
            reply = self.nodes[i].command(command).unwrap_or_default();
            !reply.is_empty() && !reply.starts_with('-')
        });
        reply
    }

    fn wait_for_all(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        for node in &self.nodes {
            wait_until(what, || node.command("CLUSTER INFO").is_ok_and(|info| is_so(&info)));
        }
    }

    fn wait_for_replica(&self, i: usize) {
        wait_until("a replica has caught up", || {
            self.nodes[i].command("INFO replication").is_ok_and(|info| info.contains("master_link_status:up"))
        });
    }
}

/// A slot on its way from one primary to another.
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
    /// Some of the keys that are still with the old owner.
    ///
    /// # Errors
    /// When it does not answer, or with an error.
    pub fn keys_left(&self, most: usize) -> io::Result<Vec<Vec<u8>>> {
        let (slot, most) = (self.slot.to_string(), most.to_string());
        let words: [&[u8]; 4] = [b"CLUSTER", b"GETKEYSINSLOT", slot.as_bytes(), most.as_bytes()];
        resp::command(self.cluster.nodes[self.from].port(), &words)
    }

    /// Moves these keys.
    ///
    /// # Errors
    /// When a node does not answer, or with an error, as when the new owner has such a key (`BUSYKEY`).
    pub fn carry(&self, keys: &[Vec<u8>]) -> io::Result<()> {
        let port = self.cluster.nodes[self.to].port().to_string();
        let mut words: Vec<&[u8]> = vec![b"MIGRATE", b"127.0.0.1", port.as_bytes(), b"", b"0", b"5000", b"KEYS"];
        words.extend(keys.iter().map(Vec::as_slice));
        resp::command(self.cluster.nodes[self.from].port(), &words).map(drop)
    }

    /// Gives the slot to its new owner, once there is no key left.
    pub fn end(self) {
        let Self { cluster, slot, from, to, target } = self;
        // The new owner first: the old one would otherwise send clients to one that sends them back. A late word of the
        // old one can undo that, so it is said until all have heard.
        for node in [to, from].into_iter().chain(0..PRIMARIES) {
            wait_until("all primaries know the new owner", || {
                cluster.gives(node, &target, slot) || {
                    cluster.tell(node, &format!("CLUSTER SETSLOT {slot} NODE {target}"));
                    cluster.gives(to, &target, slot) && cluster.gives(node, &target, slot)
                }
            });
        }
    }
}

/// `FIRST LAST` for each primary.
fn slot_ranges() -> impl Iterator<Item = String> {
    let each = usize::from(SLOTS) / PRIMARIES;
    (0..PRIMARIES).map(move |i| {
        let last = if i + 1 == PRIMARIES { usize::from(SLOTS) - 1 } else { (i + 1) * each - 1 };
        format!("{} {last}", i * each)
    })
}

/// Each node with its slots, in an order that all views share.
fn shares(view: &str) -> Option<Vec<String>> {
    let mut shares: Vec<String> = view
        .lines()
        .filter_map(|line| {
            let id = line.split_whitespace().next()?;
            let slots: Vec<&str> = line.split_whitespace().skip(8).filter(|slots| !slots.starts_with('[')).collect();
            (!slots.is_empty()).then(|| format!("{id} {}", slots.join(" ")))
        })
        .collect();
    shares.sort();
    (!shares.is_empty()).then_some(shares)
}

/// Whether a line of `CLUSTER NODES` gives its node this slot: `ID ADDRESS FLAGS ... STATE 0-5460 7000`.
fn holds(line: &str, slot: u16) -> bool {
    line.split_whitespace().skip(8).any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        matches!((first.parse::<u16>(), last.parse::<u16>()), (Ok(first), Ok(last)) if first <= slot && slot <= last)
    })
}

/// `:123`
fn number(reply: &str) -> Option<u16> {
    reply.trim().strip_prefix(':')?.parse().ok()
}
