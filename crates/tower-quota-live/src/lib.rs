//! Rules for [tower-quota](tower_quota) that change while requests run.
//!
//! [`LiveRules`] puts the documents of a [`RuleStore`] in force on a layer, through its
//! [handle](tower_quota::RateLimitHandle):
//!
//! ```
//! use tower_quota::{MemoryStore, Policy, RateLimitLayer};
//! use tower_quota_live::{LiveOptions, LiveRules, MemoryRules, NewVersion, WithoutRules};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
//! // A store without rules is an error of the start, unless you choose what holds until then.
//! let options = LiveOptions::new().without_rules(WithoutRules::Refuse);
//! let live = LiveRules::start(layer.handle(), MemoryRules::new(), options).await?;
//!
//! let document = "limits:\n  - name: minute\n    quota: 100/minute\n";
//! let first = live.put(None, NewVersion::new(document, "ann").comment("the first limits")).await?;
//! assert_eq!(live.state().in_force.unwrap().version.number, first.number);
//!
//! let stricter = NewVersion::new(document.replace("100", "10"), "bob");
//! live.put(Some(first.number), stricter).await?;
//! live.rollback(None, first.number, "ann").await?;
//! # Ok(())
//! # }
//! ```
//!
//! The [guide] shows blocks, overrides and fixes for problems.
//!
//! | store | feature | shared by |
//! |---|---|---|
//! | [`MemoryRules`] | | one instance |
//! | `FileRules` | `file` | the readers of a file, such as a Kubernetes config map |
//! | `RedisRules` | `redis` | all instances |
//!
//! You can rely on these guarantees:
//!
//! * **Requests never wait for a store.** A document is read, checked and compiled in the
//!   background, and replaces the old document in a single step.
//! * **Every instance has limits.** [`LiveRules::start`] fails without rules, unless you choose
//!   [what to do until then](LiveOptions::without_rules).
//! * **The last valid document stays in force** during an outage or after an invalid change, and
//!   across restarts with a [local copy](LiveOptions::local_copy). See [`LiveRules::state`].
//! * **Versions only go up.** If two writers expect the same version, the second writer gets a
//!   [conflict](RuleStoreError::Conflict). [`LiveRules::rollback`] makes a new version. After a loss of data, a put by a
//!   process that knows no version begins at 1 if no instance has restored the document before.
//! * **Counters are kept**, see
//!   [`RateLimitHandle::replace_policy`](tower_quota::RateLimitHandle::replace_policy).

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

/// The guide to live rules.
#[cfg(any(not(doctest), all(feature = "file", feature = "redis")))]
#[doc = include_str!("../guide/live_rules.md")]
pub mod guide {}

mod audit;
mod blocks;
mod change;
mod error;
mod files;
mod follow;
#[cfg(not(feature = "metrics"))]
mod metrics;
mod options;
mod refusals;
mod rules;
mod store;
mod time;
mod top;
mod version;
mod wait;

#[cfg(feature = "metrics")]
use tower_quota::metrics;

pub use self::audit::{Action, AuditRecord};
pub use self::blocks::{Block, BlockKind, Listing, NewBlock, Target};
pub use self::change::By;
pub use self::error::{ChangeError, StartError};
pub use self::follow::{InForce, LiveState, ReloadCounts, VersionFate, VersionState};
pub use self::options::{LiveOptions, WithoutRules};
pub use self::refusals::{Refusal, RefusalFilter, RefusalList};
pub use self::rules::{BlockTarget, LiveRules, VersionDifferences};
#[cfg(feature = "file")]
pub use self::store::FileRules;
#[cfg(feature = "redis")]
pub use self::store::RedisRules;
pub use self::store::{
    BlockChanges, BlockStore, KEPT_RECORDS, KEPT_VERSIONS, MOST_BLOCKS, MOST_PENALTY_BLOCKS,
    MemoryRules, Reply, RuleStore, RuleStoreError, StoreState,
};
pub use self::time::{Time, TimeError};
#[cfg(feature = "redis")]
pub use self::top::SharedTop;
pub use self::top::{Counted, ListedClient, TopList};
pub use self::version::{NewVersion, Version, VersionInfo};
