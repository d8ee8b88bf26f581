use std::collections::{HashMap, VecDeque};
use std::sync::{self, Arc};

use arc_swap::ArcSwapOption;
use tokio::sync::{Mutex, Notify, Semaphore, watch};
use tower_quota::{BoxStore, RateLimitHandle};

use super::fates::{Fates, VersionFate};
use super::held_change::HeldChange;
use super::in_force::InForce;
use super::state::{Health, LiveState};
use crate::audit::AuditRecord;
use crate::blocks::{Block, BlockSet};
use crate::error::StartError;
use crate::options::LiveOptions;
use crate::refusals::RefusalLog;
use crate::store::{BlockChanges, BlockStore, MOST_BLOCKS, Point, RuleStore, with_blocks};
use crate::time::Time;
use crate::version::VersionInfo;

/// The seed of instances without a secret, so that they agree on the ids of blocks.
const PUBLIC_SEED: [u8; 16] = *b"tower-quota keys";

pub(crate) struct FollowedRules {
    pub(crate) handle: RateLimitHandle<BoxStore>,
    pub(crate) store: Arc<dyn BlockStore>,
    pub(crate) options: LiveOptions,
    pub(crate) follows_store: bool,
    pub(crate) blocks: Arc<BlockSet>,
    pub(crate) refusals: Arc<RefusalLog>,
    pub(crate) in_force: ArcSwapOption<InForce>,
    pub(super) health: Health,
    pub(super) fates: Fates,
    /// The known state, locked during calls of the store to keep the states in order.
    pub(crate) known: Mutex<Known>,
    /// The changes of blocks that the store does not have yet, by the ids of the blocks.
    pub(super) held: sync::Mutex<HashMap<String, HeldChange>>,
    /// The announced records that the store does not have yet.
    pub(super) records: sync::Mutex<VecDeque<AuditRecord>>,
    /// Locked while records are written, to keep their order.
    pub(super) keeping: Mutex<()>,
    /// Lets the follower read the store now.
    pub(super) wake: Notify,
    /// Locked while the local copy is written.
    pub(super) copying: Mutex<()>,
    pub(super) places: [Arc<Semaphore>; 2],
    pub(crate) closing: watch::Sender<bool>,
}

#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(super) revision: Option<u64>,
    /// The points of the documents and of the blocks, of an earlier process after a start from the local copy.
    pub(super) points: Option<[Point; 2]>,
    /// Whether the store has failed and not answered since. It may have lost data, so texts are
    /// compared.
    pub(super) is_doubtful: bool,
    pub(super) rejected: Option<VersionInfo>,
    /// The blocks whose removal this instance has seen, until they end.
    pub(super) removed: HashMap<String, Block>,
    /// Whether the local copy has this state.
    pub(super) is_copied: bool,
}

impl Known {
    /// Remembers a removed block, to remove the block again if the store loses the removal.
    pub(crate) fn remember_removed(&mut self, block: Block) {
        if self.removed.len() >= MOST_BLOCKS {
            let now = Time::now();
            self.removed.retain(|_, block| block.is_in_force(now));
        }
        // A forgotten removal is not put back.
        if self.removed.len() < MOST_BLOCKS {
            self.removed.insert(block.id.clone(), block);
        }
    }

    /// Notes the removals among the changes of a store. `blocks` has the blocks before the changes.
    pub(super) fn note_removals(&mut self, changes: &BlockChanges, blocks: &BlockSet) {
        for (id, changed) in &changes.changed {
            if changed.is_some() {
                self.removed.remove(id);
            } else if let Some(block) = blocks.get(id) {
                self.remember_removed(block);
            }
        }
    }
}

impl FollowedRules {
    pub(crate) fn new(
        handle: RateLimitHandle<BoxStore>,
        store: Arc<dyn RuleStore>,
        options: LiveOptions,
        follows_store: bool,
    ) -> Self {
        let blocks = Arc::new(BlockSet::new(options.key_seed.unwrap_or(PUBLIC_SEED)));
        let refusals = Arc::new(RefusalLog::new());
        match options.key_seed {
            Some(seed) => handle.hash_keys_with(seed),
            None => handle.hash_keys_by_default(PUBLIC_SEED),
        }
        handle.find_clients_with({
            let blocks = Arc::clone(&blocks);
            move |head| blocks.client_of(head)
        });
        handle.on_refusal({
            let (refusals, blocks) = (Arc::clone(&refusals), Arc::clone(&blocks));
            move |decided| refusals.add(decided, &blocks)
        });
        Self {
            handle,
            store: with_blocks(store, options.blocks.clone()),
            follows_store,
            blocks,
            refusals,
            options,
            in_force: ArcSwapOption::empty(),
            health: Health::new(),
            fates: Fates::default(),
            known: Mutex::default(),
            held: sync::Mutex::default(),
            records: sync::Mutex::default(),
            keeping: Mutex::default(),
            wake: Notify::new(),
            copying: Mutex::default(),
            places: core::array::from_fn(|_| Arc::new(Semaphore::new(1))),
            closing: watch::Sender::new(false),
        }
    }

    pub(crate) fn state(&self) -> LiveState {
        self.health.state(
            &*self.store,
            self.in_force.load().as_deref(),
            self.blocks.in_force(false).len(),
        )
    }

    pub(crate) fn start_error(&self, is_late: bool) -> StartError {
        self.health.start_error(self.store.name(), is_late)
    }

    pub(crate) fn fate(&self, version: &VersionInfo) -> VersionFate {
        self.fates.of(version)
    }

    /// Returns the number of the version in force and a hash of its text. Both are 0 without a version.
    pub(crate) fn number_and_hash(&self) -> (u64, u64) {
        let in_force = self.in_force.load();
        let version = in_force.as_ref().map(|in_force| &in_force.version);
        version.map_or((0, 0), |version| (version.number, version.short_hash()))
    }
}
