use core::net::IpAddr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tower_quota::key::{ClientIp, KeyExtractor, MAX_SENT_KEYS};
use tower_quota::{Key, Name, Policy, Quota, RequestHead};
use tower_quota_rules::Networks;

use super::block::{Block, BlockKind, Target};
use crate::store::BlockChanges;
use crate::time::Time;

pub(crate) struct BlockKeys {
    pub(crate) keys: Box<[Arc<dyn KeyExtractor>]>,
    pub(crate) client_ip: ClientIp,
}

/// The maximum bytes of a readable key, because a store has thousands of entries.
const MOST_TEXT: usize = 1_024;

pub(crate) struct BlockSet {
    seed: [u8; 16],
    // Whether there are overrides. If not, requests do not load the entries for each limit.
    has_overrides: AtomicBool,
    entries: ArcSwap<BlockEntries>,
}

struct BlockEntries {
    blocked: Listed,
    allowed: Listed,
    overrides: HashMap<String, HashMap<u64, Arc<Block>>>,
    all: HashMap<String, Arc<Block>>,
}

struct Listed {
    keys: HashMap<u64, Time>,
    networks: Networks<Time>,
}

impl BlockSet {
    pub(crate) fn new(seed: [u8; 16]) -> Self {
        Self {
            seed,
            has_overrides: AtomicBool::new(false),
            entries: ArcSwap::from_pointee(BlockEntries::of(HashMap::new())),
        }
    }

    /// Changes the entries. The caller must not run two changes at the same time.
    pub(crate) fn apply(&self, changes: BlockChanges) {
        if changes.is_complete || !changes.changed.is_empty() {
            let mut all = self.entries.load().all.clone();
            changes.apply_to(&mut all);
            let entries = Arc::new(BlockEntries::of(all));
            self.has_overrides
                .store(!entries.overrides.is_empty(), Ordering::Release);
            self.entries.store(entries);
        }
    }

    pub(crate) fn in_force(&self, of_limits: bool) -> Vec<Arc<Block>> {
        let (entries, now) = (self.entries.load(), Time::now());
        let is_listed = |block: &&Arc<Block>| {
            block.is_in_force(now) && block.kind.limit().is_some() == of_limits
        };
        entries.all.values().filter(is_listed).cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<Block> {
        let entries = self.entries.load();
        entries
            .all
            .values()
            .map(|block| (**block).clone())
            .collect()
    }

    pub(crate) fn get(&self, id: &str) -> Option<Block> {
        self.entries
            .load()
            .all
            .get(id)
            .map(|block| (**block).clone())
    }

    pub(crate) fn target(&self, key: &Key<'_>, text: Option<String>) -> Target {
        Target::Key {
            scope: key.scope().as_str().to_owned(),
            hash: self.hash_text(key),
            text: text.filter(|text| text.len() <= MOST_TEXT),
        }
    }

    /// Returns the hash of a key as text, the id of a block and the name of the client in lists and
    /// audit records.
    pub(crate) fn hash_text(&self, key: &Key<'_>) -> String {
        format!("{:016x}", self.hash(key))
    }

    pub(crate) fn hash(&self, key: &Key<'_>) -> u64 {
        u64::try_from(key.digest(&self.seed) >> 64).unwrap_or_default()
    }

    pub(crate) fn add_to(self: &Arc<Self>, policy: Policy, keys: BlockKeys) -> Policy {
        let keys = Arc::new(keys);
        let (allowing, blocking) = (
            (Arc::clone(self), Arc::clone(&keys)),
            (Arc::clone(self), keys),
        );
        let overriding = Arc::clone(self);
        policy
            .allow(move |head: &RequestHead<'_>| allowing.0.allows(head, &allowing.1))
            .block(move |head: &RequestHead<'_>| blocking.0.blocks(head, &blocking.1))
            .overrides(move |limit, key, _| overriding.quota(limit, key))
    }

    fn quota(&self, limit: Name, key: &Key<'_>) -> Option<Quota> {
        if !self.has_overrides.load(Ordering::Acquire) {
            return None;
        }
        let (entries, limit) = (self.entries.load(), limit.as_str());
        let of_client = entries.overrides.get(limit)?.get(&self.hash(key))?;
        match &of_client.kind {
            BlockKind::Override { quota, .. } if of_client.is_in_force(Time::now()) => {
                Some(*quota.quota())
            }
            _ => None,
        }
    }

    /// Returns whether the counted key is allowed. A request with conflicting values has an empty
    /// key.
    fn allows(&self, head: &RequestHead<'_>, keys: &BlockKeys) -> bool {
        let allowed = &self.entries.load().allowed;
        let is_allowed = |extractor: &Arc<dyn KeyExtractor>| {
            extractor
                .extract(head)
                .is_some_and(|key| self.has_key(allowed, &key))
        };
        !allowed.keys.is_empty() && keys.keys.iter().any(is_allowed)
            || allowed.has_address(|| keys.client_ip.address(head))
    }

    fn blocks(&self, head: &RequestHead<'_>, keys: &BlockKeys) -> bool {
        let blocked = &self.entries.load().blocked;
        let is_blocked = |extractor: &Arc<dyn KeyExtractor>| {
            let (mut found, mut sent) = (false, 0);
            extractor.each_key(head, &mut |key| {
                found |= self.has_key(blocked, key);
                sent += 1;
            });
            found || sent > MAX_SENT_KEYS
        };
        !blocked.keys.is_empty() && keys.keys.iter().any(is_blocked)
            || blocked.has_address(|| keys.client_ip.address(head))
    }

    fn has_key(&self, listed: &Listed, key: &Key<'_>) -> bool {
        !key.as_bytes().is_empty() && listed.has_key(self.hash(key))
    }
}

impl BlockEntries {
    fn of(all: HashMap<String, Arc<Block>>) -> Self {
        let of_kind = |is_it: fn(&BlockKind) -> bool| {
            all.values()
                .map(|block| &**block)
                .filter(move |block| is_it(&block.kind))
        };
        let mut overrides = HashMap::<_, HashMap<_, _>>::new();
        for block in all.values() {
            if let (Some(limit), Some(hash)) = (block.kind.limit(), block.target.hash()) {
                let of_limit = overrides.entry(limit.to_owned()).or_default();
                of_limit.insert(hash, Arc::clone(block));
            }
        }
        Self {
            blocked: Listed::of(of_kind(|kind| matches!(kind, BlockKind::Block { .. }))),
            allowed: Listed::of(of_kind(|kind| matches!(kind, BlockKind::Allow))),
            overrides,
            all,
        }
    }
}

impl Listed {
    fn of<'b>(blocks: impl Iterator<Item = &'b Block>) -> Self {
        let mut keys = HashMap::new();
        let mut networks = Vec::new();
        for block in blocks {
            if let Target::Network(network) = &block.target {
                networks.push((*network, block.until));
            } else if let Some(hash) = block.target.hash() {
                keys.insert(hash, block.until);
            }
        }
        Self {
            keys,
            networks: networks.into_iter().collect(),
        }
    }

    fn has_key(&self, hash: u64) -> bool {
        // Read the clock only for listed keys, because most requests have none.
        self.keys
            .get(&hash)
            .is_some_and(|until| *until > Time::now())
    }

    fn has_address(&self, address: impl FnOnce() -> Option<IpAddr>) -> bool {
        if self.networks.is_empty() {
            return false;
        }
        let Some(address) = address() else {
            return false;
        };
        let now = Time::now();
        self.networks.find(address).any(|until| *until > now)
    }
}
