//! Keeps documents, blocks and audit records.

mod error;
#[cfg(feature = "file")]
mod file;
mod memory;
mod point;
#[cfg(feature = "redis")]
mod redis;
mod state;
mod with_blocks;

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use std::sync::Arc;

use tokio::sync::watch;

pub use self::error::RuleStoreError;
#[cfg(feature = "file")]
pub use self::file::FileRules;
pub use self::memory::MemoryRules;
pub(crate) use self::point::Point;
#[cfg(feature = "redis")]
pub use self::redis::RedisRules;
#[cfg(feature = "redis")]
pub(crate) use self::redis::{RedisConnection, check_name, name_of_service};
pub use self::state::{BlockChanges, StoreState};
pub(crate) use self::with_blocks::with_blocks;
use super::audit::AuditRecord;
use super::blocks::Block;
use super::version::{NewVersion, Version, VersionInfo};

/// The number of versions in a store, the version in force included.
pub const KEPT_VERSIONS: u64 = 50;
/// The number of audit records in a store.
pub const KEPT_RECORDS: usize = 1_000;
/// The maximum number of blocks, allowances and overrides in a store.
pub const MOST_BLOCKS: usize = 10_000;
/// The maximum number of blocks by penalties. The remaining space is for operators.
pub const MOST_PENALTY_BLOCKS: usize = 8_000;

/// A pending answer of a store.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, RuleStoreError>> + Send + 'a>>;

/// A store of documents.
///
/// Methods are atomic and finish in bounded time, so a store over a network needs a deadline.
/// Version numbers only go up, above [`NewVersion::above`]. No request waits for these methods.
///
/// Live rules keep blocks and audit records in [your choice of store](crate::LiveOptions::blocks_in),
/// or in the memory of each instance.
pub trait RuleStore: fmt::Debug + Send + Sync + 'static {
    /// Returns the name of the store for logs, without secrets, such as `redis at 10.0.0.5:6379`.
    fn name(&self) -> String;

    /// Returns the name of the documents in this store, without secrets. The default is the [name](Self::name).
    ///
    /// A local copy of other documents is not used. If services share a store, add the name of the service.
    fn identity(&self) -> String {
        self.name()
    }

    /// Returns the number of the version in force.
    ///
    /// Returns a state only if the revision has changed. A [`BlockStore`] adds the blocks changed since
    /// the known revision, or all blocks.
    fn state(&self, known: Option<u64>) -> Reply<'_, Option<StoreState>>;

    /// Returns a version, unless the store has dropped it.
    fn version(&self, number: u64) -> Reply<'_, Option<Version>>;

    /// Returns the latest versions without their texts, the newest first.
    fn history(&self, most: usize) -> Reply<'_, Vec<VersionInfo>>;

    /// Stores a document under a new number, and puts the document in force.
    ///
    /// # Errors
    /// Returns [`RuleStoreError::Conflict`] unless `expected` is the [current](StoreState::current)
    /// version, 0 for an empty store, or `None` for any.
    fn put(&self, expected: Option<u64>, new: NewVersion) -> Reply<'_, Version>;

    /// Returns a receiver that is marked changed after a possible change of the state.
    ///
    /// Announcements may be lost, so live rules poll the [state](Self::state) too.
    fn changes(&self) -> watch::Receiver<()>;

    /// Returns whether documents can only be read here, so that every [`put`](Self::put) fails with
    /// [`RuleStoreError::ReadOnly`]. The default is false.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Puts a lost version back as the newest version. Returns whether the store had lost it.
    ///
    /// `known` is the last revision that the caller has read. Keep a version with the same or a
    /// higher number. If the store began again after `known`, keep the document of an operator too.
    /// The default is for stores that lose nothing.
    fn restore<'a>(&'a self, version: &'a Version, known: u64) -> Reply<'a, bool> {
        let _ = (version, known);
        Box::pin(core::future::ready(Ok(false)))
    }

    /// Returns this store, if it also keeps blocks and audit records. The default is `None`.
    fn blocks(self: Arc<Self>) -> Option<Arc<dyn BlockStore>> {
        None
    }

    /// Returns the version in force.
    fn current(&self) -> Reply<'_, Option<Version>> {
        Box::pin(async move {
            match self.state(None).await?.and_then(|state| state.current) {
                Some(number) => self.version(number).await,
                None => Ok(None),
            }
        })
    }
}

/// A store that also keeps blocks, allowances, overrides and audit records.
pub trait BlockStore: RuleStore {
    /// Returns whether all instances see the blocks, allowances, overrides and audit records of this
    /// store.
    ///
    /// If not, they hold on this instance only, and are lost when it restarts.
    fn shares_blocks(&self) -> bool;

    /// Puts lost changes of blocks back, and returns their ids. A block is `None` if it was removed.
    ///
    /// `known` is the last revision that the caller has read. Later changes stay.
    fn restore_blocks<'a>(&'a self, known: u64, lost: &'a BlockChanges) -> Reply<'a, Vec<String>>;

    /// Adds an entry, and replaces an entry with the same id. Returns the earlier entry.
    ///
    /// The block of a penalty replaces no entry of an operator, which stays unchanged.
    ///
    /// Above [`MOST_BLOCKS`], or above [`MOST_PENALTY_BLOCKS`] for the block of a penalty, the
    /// store removes the penalty's block with the earliest end.
    ///
    /// # Errors
    /// Returns [`RuleStoreError::TooManyBlocks`] if there is no block of a penalty.
    fn put_block(&self, block: Block) -> Reply<'_, Option<Block>>;

    /// Removes an entry by its id, and returns the entry.
    fn remove_block<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Block>>;

    /// Adds a record to the audit log.
    ///
    /// All instances that follow a file add a record of its [change](crate::Action::File), and an instance adds a record
    /// again after a lost answer. A shared store keeps the first of equal records.
    fn record(&self, record: AuditRecord) -> Reply<'_, ()>;

    /// Returns the latest audit records, the newest first.
    fn audit(&self, most: usize) -> Reply<'_, Vec<AuditRecord>>;
}
