use core::net::IpAddr;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ipnet::IpNet;

use super::block::{Block, BlockKind, Target};
use super::shards::Shards;
use crate::time::Time;

/// The entries of an instance, indexed for requests. A change takes the same time with a thousand
/// entries as with ten.
#[derive(Clone, Default)]
pub(super) struct BlockEntries {
    pub(super) blocked: Listed,
    pub(super) allowed: Listed,
    /// The overrides by the hash of the client. A client has few.
    overrides: Shards<u64, Vec<Arc<Block>>>,
    all: Shards<String, Arc<Block>>,
    /// The earliest end of an entry. Entries that have ended leave with the next change.
    next_end: Option<Time>,
}

/// The blocked or allowed clients.
#[derive(Clone, Default)]
pub(super) struct Listed {
    keys: Shards<u64, Arc<Block>>,
    networks: Shards<IpNet, Arc<Block>>,
    /// The number of networks by the length of the prefix.
    lengths: BTreeMap<u8, usize>,
}

impl BlockEntries {
    pub(super) fn apply(&mut self, changed: HashMap<String, Option<Block>>, now: Time) {
        for (id, block) in changed {
            self.remove(&id);
            if let Some(block) = block.filter(|block| block.is_in_force(now)) {
                self.insert(Arc::new(block));
            }
        }
        if self.next_end.is_some_and(|end| end <= now) {
            self.drop_ended(now);
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Block>> {
        self.all.values()
    }

    pub(super) fn get(&self, id: &str) -> Option<&Arc<Block>> {
        self.all.get(id)
    }

    pub(super) const fn has_overrides(&self) -> bool {
        self.overrides.len() > 0
    }

    pub(super) fn override_of(&self, limit: &str, hash: u64) -> Option<&Arc<Block>> {
        let mut of_client = self.overrides.get(&hash)?.iter();
        of_client.find(|block| block.kind.limit() == Some(limit))
    }

    fn insert(&mut self, block: Arc<Block>) {
        let end = self
            .next_end
            .map_or(block.until, |end| end.min(block.until));
        self.next_end = Some(end);
        if let Some(listed) = self.listed(&block.kind) {
            listed.insert(&block);
        } else if let Some(hash) = block.target.hash() {
            let mut of_client = self.overrides.remove(&hash).unwrap_or_default();
            of_client.push(Arc::clone(&block));
            self.overrides.insert(hash, of_client);
        }
        self.all.insert(block.id.clone(), block);
    }

    fn remove(&mut self, id: &str) {
        let Some(block) = self.all.remove(id) else {
            return;
        };
        if let Some(listed) = self.listed(&block.kind) {
            listed.remove(&block.target);
        } else if let Some(hash) = block.target.hash() {
            let mut of_client = self.overrides.remove(&hash).unwrap_or_default();
            of_client.retain(|other| other.id != block.id);
            if !of_client.is_empty() {
                self.overrides.insert(hash, of_client);
            }
        }
    }

    /// Returns the list of a kind. Overrides have none.
    fn listed(&mut self, kind: &BlockKind) -> Option<&mut Listed> {
        match kind {
            BlockKind::Block { .. } => Some(&mut self.blocked),
            BlockKind::Allow => Some(&mut self.allowed),
            BlockKind::Override { .. } => None,
        }
    }

    fn drop_ended(&mut self, now: Time) {
        let ended = self.all().filter(|block| !block.is_in_force(now));
        let ended: Vec<String> = ended.map(|block| block.id.clone()).collect();
        for id in ended {
            self.remove(&id);
        }
        self.next_end = self.all().map(|block| block.until).min();
    }
}

impl Listed {
    pub(super) const fn has_keys(&self) -> bool {
        self.keys.len() > 0
    }

    pub(super) fn of_key(&self, hash: u64) -> Option<&Arc<Block>> {
        // Read the clock only for listed keys, because most requests have none.
        let block = self.keys.get(&hash)?;
        block.is_in_force(Time::now()).then_some(block)
    }

    pub(super) fn of_address(
        &self,
        address: impl FnOnce() -> Option<IpAddr>,
    ) -> Option<&Arc<Block>> {
        if self.lengths.is_empty() {
            return None;
        }
        let (address, now) = (address()?, Time::now());
        let mut blocks = self.lengths.keys().filter_map(|length| {
            let network = IpNet::new(address, *length).ok()?;
            self.networks.get(&network.trunc())
        });
        blocks.find(|block| block.is_in_force(now))
    }

    fn insert(&mut self, block: &Arc<Block>) {
        if let Target::Network(network) = &block.target {
            *self.lengths.entry(network.prefix_len()).or_default() += 1;
            self.networks.insert(network.trunc(), Arc::clone(block));
        } else if let Some(hash) = block.target.hash() {
            self.keys.insert(hash, Arc::clone(block));
        }
    }

    fn remove(&mut self, target: &Target) {
        if let Target::Network(network) = target {
            self.networks.remove(&network.trunc());
            let length = network.prefix_len();
            let rest = self.lengths.remove(&length).unwrap_or_default();
            if rest > 1 {
                self.lengths.insert(length, rest - 1);
            }
        } else if let Some(hash) = target.hash() {
            self.keys.remove(&hash);
        }
    }
}
