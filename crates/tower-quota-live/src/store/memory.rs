use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{
    BlockChanges, BlockStore, KEPT_RECORDS, KEPT_VERSIONS, MOST_BLOCKS, MOST_PENALTY_BLOCKS, Reply,
    RuleStore, RuleStoreError, StoreState,
};
use crate::audit::AuditRecord;
use crate::blocks::Block;
use crate::time::Time;
use crate::version::{NewVersion, Version, VersionInfo};

/// A [`RuleStore`] in this process, for a single instance and for tests. It ends with the process.
#[derive(Debug, Default)]
pub struct MemoryRules {
    kept: Mutex<Kept>,
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct Kept {
    /// The first revision. It follows the time, to be above the revisions of earlier processes in a local copy.
    began: u64,
    revision: u64,
    latest: u64,
    current: Option<u64>,
    versions: BTreeMap<u64, Version>,
    blocks: HashMap<String, Block>,
    records: VecDeque<AuditRecord>,
}

impl Default for Kept {
    fn default() -> Self {
        let now = u64::try_from(Time::now().unix_millis()).unwrap_or_default();
        let began = now.saturating_mul(1_000);
        Self {
            began,
            revision: began,
            latest: 0,
            current: None,
            versions: BTreeMap::new(),
            blocks: HashMap::new(),
            records: VecDeque::new(),
        }
    }
}

impl MemoryRules {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // The last assignment makes a change visible, so a panic before leaves the previous state.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(feature = "file")]
    pub(super) fn announce(&self) {
        self.changed.send_replace(());
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut Kept) -> Result<T, RuleStoreError>,
    ) -> Result<T, RuleStoreError> {
        let mut kept = self.lock();
        let changed = change(&mut kept)?;
        kept.revision += 1;
        drop(kept);
        self.changed.send_replace(());
        Ok(changed)
    }

    pub(super) fn put_now(
        &self,
        expected: Option<u64>,
        new: NewVersion,
    ) -> Result<Version, RuleStoreError> {
        self.change(|kept| {
            kept.expect(expected)?;
            kept.latest = kept.latest.max(new.above) + 1;
            let number = kept.latest;
            let version = Version::new(number, new);
            kept.versions.insert(number, version.clone());
            kept.current = Some(number);
            let oldest = number.saturating_sub(KEPT_VERSIONS);
            kept.versions.retain(|known, _| *known > oldest);
            Ok(version)
        })
    }
}

impl Kept {
    fn expect(&self, expected: Option<u64>) -> Result<(), RuleStoreError> {
        let current = self.current;
        if expected.is_some_and(|expected| expected != current.unwrap_or(0)) {
            return Err(RuleStoreError::Conflict { current });
        }
        Ok(())
    }

    fn make_room(&mut self, is_of_penalty: bool) -> Result<(), RuleStoreError> {
        if self.blocks.len() >= MOST_BLOCKS {
            let now = Time::now();
            self.blocks.retain(|_, block| block.is_in_force(now));
        }
        let of_penalties = self.blocks.values().filter(|block| block.is_of_penalty());
        let has_most = is_of_penalty && of_penalties.clone().count() >= MOST_PENALTY_BLOCKS;
        if self.blocks.len() < MOST_BLOCKS && !has_most {
            return Ok(());
        }
        let soonest = of_penalties.min_by_key(|block| block.until);
        let id = soonest.ok_or(RuleStoreError::TooManyBlocks)?.id.clone();
        self.blocks.remove(&id);
        Ok(())
    }
}

fn ready<'a, T: Send + 'a>(answer: Result<T, RuleStoreError>) -> Reply<'a, T> {
    Box::pin(core::future::ready(answer))
}

impl RuleStore for MemoryRules {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn state(&self, known: Option<u64>) -> Reply<'_, Option<StoreState>> {
        let (kept, now) = (self.lock(), Time::now());
        let in_force = |block: &&Block| block.is_in_force(now);
        let state = (known != Some(kept.revision)).then(|| StoreState {
            revision: kept.revision,
            began: kept.began,
            current: kept.current,
            // All blocks are in memory, so a list of the changed ones would save little.
            blocks: BlockChanges::all(kept.blocks.values().filter(in_force).cloned()),
            ..StoreState::default()
        });
        ready(Ok(state))
    }

    fn version(&self, number: u64) -> Reply<'_, Option<Version>> {
        ready(Ok(self.lock().versions.get(&number).cloned()))
    }

    fn history(&self, most: usize) -> Reply<'_, Vec<VersionInfo>> {
        ready(Ok(self
            .lock()
            .versions
            .values()
            .rev()
            .take(most)
            .map(Version::info)
            .collect()))
    }

    fn put(&self, expected: Option<u64>, new: NewVersion) -> Reply<'_, Version> {
        ready(self.put_now(expected, new))
    }

    fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    fn blocks(self: Arc<Self>) -> Option<Arc<dyn BlockStore>> {
        Some(self)
    }
}

impl BlockStore for MemoryRules {
    fn shares_blocks(&self) -> bool {
        false
    }

    fn restore_blocks<'a>(&'a self, known: u64, lost: &'a BlockChanges) -> Reply<'a, Vec<String>> {
        // An earlier revision comes from an earlier process, whose blocks the local copy has kept.
        if known >= self.lock().began {
            return ready(Ok(Vec::new()));
        }
        ready(self.change(|kept| {
            let mut restored = Vec::new();
            for block in lost.changed.values().flatten() {
                if !kept.blocks.contains_key(&block.id) {
                    kept.blocks.insert(block.id.clone(), block.clone());
                    restored.push(block.id.clone());
                }
            }
            Ok(restored)
        }))
    }

    fn put_block(&self, block: Block) -> Reply<'_, Option<Block>> {
        ready(self.change(|kept| {
            let now = Time::now();
            let in_force = |before: &Block| before.is_in_force(now);
            let before = kept.blocks.get(&block.id).filter(|before| in_force(before));
            match before {
                Some(before) if !block.replaces(before) => return Ok(Some(before.clone())),
                Some(_) => {}
                None => kept.make_room(block.is_of_penalty())?,
            }
            let before = kept.blocks.insert(block.id.clone(), block);
            Ok(before.filter(in_force))
        }))
    }

    fn remove_block<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Block>> {
        ready(self.change(|kept| Ok(kept.blocks.remove(id))))
    }

    fn record(&self, record: AuditRecord) -> Reply<'_, ()> {
        let mut kept = self.lock();
        kept.records.push_front(record);
        kept.records.truncate(KEPT_RECORDS);
        ready(Ok(()))
    }

    fn audit(&self, most: usize) -> Reply<'_, Vec<AuditRecord>> {
        ready(Ok(self.lock().records.iter().take(most).cloned().collect()))
    }
}
