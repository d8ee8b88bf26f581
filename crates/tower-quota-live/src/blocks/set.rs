use core::net::IpAddr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
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
    /// The keys of the policy in force, to find the client of a request.
    keys: ArcSwapOption<BlockKeys>,
}

/// The entry that decides about a request, unless the request sent too many keys, and the listed key, unless a network is
/// listed.
type Hit<'h> = (Option<&'h Arc<Block>>, Option<&'h Key<'h>>);

impl BlockSet {
    pub(crate) fn new(seed: [u8; 16]) -> Self {
        Self {
            seed,
            has_overrides: AtomicBool::new(false),
            entries: ArcSwap::default(),
            keys: ArcSwapOption::empty(),
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
        self.keys.store(Some(Arc::clone(&keys)));
        let (allowing, blocking) = (
            (Arc::clone(self), Arc::clone(&keys)),
            (Arc::clone(self), keys),
        );
        let overriding = Arc::clone(self);
        policy
            .allow(move |head: &RequestHead<'_>| {
                allowing.0.allowance(head, &allowing.1, no_part).is_some()
            })
            .block(move |head: &RequestHead<'_>| {
                blocking.0.block(head, &blocking.1, no_part).is_some()
            })
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

    /// Returns a part of the allowance of a counted key or an address. A request with conflicting values has an empty key.
    fn allowance<T>(
        &self,
        head: &RequestHead<'_>,
        keys: &BlockKeys,
        part: impl Fn(Hit<'_>) -> T,
    ) -> Option<T> {
        let allowed = &self.entries.load().allowed;
        if allowed.has_keys() {
            for extractor in &keys.keys {
                if let Some(key) = extractor.extract(head)
                    && let Some(block) = self.of_key(allowed, &key)
                {
                    return Some(part((Some(block), Some(&key))));
                }
            }
        }
        let network = allowed.of_address(|| keys.client_ip.address(head))?;
        Some(part((Some(network), None)))
    }

    /// Returns a part of the block of a sent key or an address.
    fn block<T>(
        &self,
        head: &RequestHead<'_>,
        keys: &BlockKeys,
        part: impl Fn(Hit<'_>) -> T,
    ) -> Option<T> {
        let blocked = &self.entries.load().blocked;
        if blocked.has_keys() {
            for extractor in &keys.keys {
                let (mut found, mut sent) = (None, 0);
                extractor.each_key(head, &mut |key| {
                    if found.is_none()
                        && let Some(block) = self.of_key(blocked, key)
                    {
                        found = Some(part((Some(block), Some(key))));
                    }
                    sent += 1;
                });
                if found.is_some() {
                    return found;
                }
                if sent > MAX_SENT_KEYS {
                    return Some(part((None, None)));
                }
            }
        }
        let network = blocked.of_address(|| keys.client_ip.address(head))?;
        Some(part((Some(network), None)))
    }

    fn of_key<'l>(&self, listed: &'l Listed, key: &Key<'_>) -> Option<&'l Arc<Block>> {
        if key.as_bytes().is_empty() {
            return None;
        }
        listed.of_key(self.hash(key))
    }

    /// Returns the allowance of a client, or else the block.
    pub(crate) fn entry_of_client(&self, key: &Key<'_>) -> Option<Arc<Block>> {
        let entries = self.entries.load();
        let listed = [&entries.allowed, &entries.blocked];
        let mut found = listed.into_iter().filter_map(|listed| {
            let of_key = self.of_key(listed, key);
            of_key.or_else(|| listed.of_address(|| key.to_address()))
        });
        found.next().cloned()
    }

    /// Returns the allowance of an address, or else the block.
    pub(crate) fn entry_of_address(&self, address: IpAddr) -> Option<Arc<Block>> {
        let entries = self.entries.load();
        let allowed = entries.allowed.of_address(|| Some(address));
        let found = allowed.or_else(|| entries.blocked.of_address(|| Some(address)));
        found.cloned()
    }

    /// Returns the allowance of a request, or else the block.
    pub(crate) fn entry(&self, head: &RequestHead<'_>) -> Option<Arc<Block>> {
        let keys = self.keys.load_full()?;
        let entry = |(block, _): Hit<'_>| block.cloned();
        self.allowance(head, &keys, entry)
            .or_else(|| self.block(head, &keys, entry))?
    }

    /// Returns the key by which an operator looks for the client of a request that no limit has refused.
    ///
    /// The key of a block comes first, then the first key of a single client, then the address.
    pub(crate) fn client_of(&self, head: &RequestHead<'_>) -> Option<Key<'static>> {
        let keys = self.keys.load_full()?;
        let address = || Some(keys.client_ip.extract(head)?.to_static());
        let listed_key = |(_, key): Hit<'_>| key.map(Key::to_static);
        let listed = self.allowance(head, &keys, listed_key);
        if let Some(key) = listed.or_else(|| self.block(head, &keys, listed_key)) {
            return key.or_else(address);
        }
        for extractor in &keys.keys {
            let key = extractor.extract(head);
            if let Some(key) = key.filter(|key| !key.as_bytes().is_empty()) {
                return Some(key.to_static());
            }
        }
        address()
    }

    /// Returns the key of an address, as the document reads addresses.
    pub(crate) fn address_key(&self, text: &str) -> Option<Key<'static>> {
        self.keys.load_full()?.client_ip.parse(text)
    }

    /// Returns the override of a client of a limit, if any.
    pub(crate) fn override_of(&self, limit: &str, key: &Key<'_>) -> Option<Arc<Block>> {
        let (entries, now) = (self.entries.load(), Time::now());
        let given = entries.override_of(limit, self.hash(key))?;
        given.is_in_force(now).then(|| Arc::clone(given))
    }
}

const fn no_part(_: Hit<'_>) {}
