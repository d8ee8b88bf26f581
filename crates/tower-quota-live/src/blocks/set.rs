use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use arc_swap::ArcSwap;
use tower_quota::key::{ClientIp, KeyExtractor, MAX_SENT_KEYS};
use tower_quota::{Key, Name, Policy, Quota, RequestHead};

use super::block::{Block, BlockKind, Target};
use super::entries::{BlockEntries, Listed};
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

impl BlockSet {
    pub(crate) fn new(seed: [u8; 16]) -> Self {
        Self {
            seed,
            has_overrides: AtomicBool::new(false),
            entries: ArcSwap::default(),
        }
    }

    /// Changes the entries. The caller must not run two changes at the same time.
    pub(crate) fn apply(&self, changes: BlockChanges) {
        if changes.is_complete || !changes.changed.is_empty() {
            let mut entries = match changes.is_complete {
                true => BlockEntries::default(),
                false => BlockEntries::clone(&self.entries.load()),
            };
            entries.apply(changes.changed, Time::now());
            self.has_overrides
                .store(entries.has_overrides(), Ordering::Release);
            self.entries.store(Arc::new(entries));
        }
    }

    pub(crate) fn in_force(&self, of_limits: bool) -> Vec<Arc<Block>> {
        let (entries, now) = (self.entries.load(), Time::now());
        let is_listed = |block: &&Arc<Block>| {
            block.is_in_force(now) && block.kind.limit().is_some() == of_limits
        };
        entries.all().filter(is_listed).cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<Block> {
        let entries = self.entries.load();
        entries.all().map(|block| Block::clone(block)).collect()
    }

    pub(crate) fn get(&self, id: &str) -> Option<Block> {
        let entries = self.entries.load();
        entries.get(id).map(|block| Block::clone(block))
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
        let entries = self.entries.load();
        let of_client = entries.override_of(limit.as_str(), self.hash(key))?;
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
        allowed.has_keys() && keys.keys.iter().any(is_allowed)
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
        blocked.has_keys() && keys.keys.iter().any(is_blocked)
            || blocked.has_address(|| keys.client_ip.address(head))
    }

    fn has_key(&self, listed: &Listed, key: &Key<'_>) -> bool {
        !key.as_bytes().is_empty() && listed.has_key(self.hash(key))
    }
}
