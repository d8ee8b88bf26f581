//! Stores of documents, blocks and audit records.

mod error;
#[cfg(feature = "file")]
mod file;
mod memory;
#[cfg(feature = "redis")]
mod redis;
mod state;

use core::fmt;
use core::future::Future;
use core::pin::Pin;

use tokio::sync::watch;

pub use self::error::RuleStoreError;
#[cfg(feature = "file")]
pub use self::file::FileRules;
pub use self::memory::MemoryRules;
#[cfg(feature = "redis")]
pub use self::redis::RedisRules;
#[cfg(feature = "redis")]
pub(crate) use self::redis::check_name;
pub use self::state::{BlockChanges, StoreState};
use super::audit::AuditRecord;
use super::blocks::Block;
use super::shadow::ShadowReport;
use super::version::{NewVersion, Version, VersionInfo};

/// The versions that a store keeps, beside the one in force.
pub const KEPT_VERSIONS: u64 = 50;
/// The audit records that a store keeps.
pub const KEPT_RECORDS: usize = 1_000;
/// The blocks, allowances, overrides and credits that a store keeps.
pub const MOST_BLOCKS: usize = 10_000;
/// The blocks of [`MOST_BLOCKS`] that penalties may make. Operators can always add the others.
pub const MOST_PENALTY_BLOCKS: usize = 8_000;

/// The instances of which a store keeps the counts of a shadow document.
pub const KEPT_REPORTS: usize = 1_000;

/// An answer of a store that is on its way.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, RuleStoreError>> + Send + 'a>>;

/// A place where documents, blocks and audit records are kept, shared by all instances.
///
/// Each method is one atomic step, and ends: a store over a network has a deadline of its own. Version numbers only go
/// up, above [`NewVersion::above`] too. Nothing here is called while a request is decided.
pub trait RuleStore: fmt::Debug + Send + Sync + 'static {
    /// Returns what to call the store in logs, without secrets: `redis at 10.0.0.5:6379`.
    fn name(&self) -> String;

    /// Returns the numbers of the documents, and the blocks that have changed since the known revision.
    ///
    /// It is `None` if the revision is still the known one.
    fn state(&self, known: Option<u64>) -> Reply<'_, Option<StoreState>>;

    /// Returns one version; `None` if it is not kept.
    fn version(&self, number: u64) -> Reply<'_, Option<Version>>;

    /// Returns the latest versions without their texts, the newest first.
    fn history(&self, most: usize) -> Reply<'_, Vec<VersionInfo>>;

    /// Stores a document under a new number.
    ///
    /// The document is in force, or it is the shadow document. Either way it replaces an earlier shadow document.
    ///
    /// # Errors
    /// [`RuleStoreError::Conflict`] unless `expected` is the [newest](StoreState::newest) version, or 0 and there is none;
    /// `None` takes any.
    fn put(&self, expected: Option<u64>, new: NewVersion) -> Reply<'_, Version>;

    /// Puts the shadow document of this number in force.
    ///
    /// # Errors
    /// [`RuleStoreError::Conflict`] if another document, or none, is the shadow document by now.
    fn promote(&self, shadow: u64) -> Reply<'_, ()>;

    /// Removes the shadow document of this number.
    ///
    /// # Errors
    /// As [`promote`](Self::promote).
    fn abandon(&self, shadow: u64) -> Reply<'_, ()>;

    /// Puts a version back into a store that has lost it. Returns whether it was necessary.
    ///
    /// A store that has a document keeps it, unless that was restored too and is older.
    fn restore<'a>(&'a self, version: &'a Version) -> Reply<'a, bool>;

    /// Puts blocks back into a store that has lost them. Blocks that it has, or that were removed since, stay so.
    fn restore_blocks<'a>(&'a self, blocks: &'a [Block]) -> Reply<'a, ()>;

    /// Adds an entry, or replaces the entry of the same id. Returns the entry before.
    ///
    /// Above [`MOST_BLOCKS`], or above [`MOST_PENALTY_BLOCKS`] for the block of a penalty, the store removes the block of
    /// a penalty that ends soonest.
    ///
    /// # Errors
    /// [`RuleStoreError::TooManyBlocks`] if no block is of a penalty.
    fn put_block(&self, block: Block) -> Reply<'_, Option<Block>>;

    /// Removes an entry by its id, and returns the entry.
    fn remove_block<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Block>>;

    /// Adds a record to the audit log.
    fn record(&self, record: AuditRecord) -> Reply<'_, ()>;

    /// Returns the latest audit records, the newest first.
    fn audit(&self, most: usize) -> Reply<'_, Vec<AuditRecord>>;

    /// Stores the counts of a shadow document on one instance, in place of its earlier ones.
    ///
    /// A store that instances do not share drops them, which is the default. What is stored is bounded, and expires.
    fn put_report<'a>(&'a self, instance: &'a str, report: ShadowReport) -> Reply<'a, ()> {
        let _ = (instance, report);
        Box::pin(core::future::ready(Ok(())))
    }

    /// Returns the counts of the instances that have stored any for this shadow document.
    ///
    /// The default is none.
    fn reports(&self, shadow: u64) -> Reply<'_, Vec<ShadowReport>> {
        let _ = shadow;
        Box::pin(core::future::ready(Ok(Vec::new())))
    }

    /// Returns a receiver that is marked as changed when the state may have changed.
    ///
    /// Announcements can be lost: ask for the [state](Self::state) from time to time.
    fn changes(&self) -> watch::Receiver<()>;

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
