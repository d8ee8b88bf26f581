//! Exact rate limiting, with the data types, the algorithms and the in-process store of tower-quota.
//!
//! Use [`tower-quota`] for services. Use this crate to write a store, or to limit jobs without HTTP. The feature `tokio`
//! adds waiting for a turn. The feature `calendar` adds days, weeks, months and years in a time zone.
//!
//! ```
//! use tower_quota_core::{Limiter, MemoryStore, Quota};
//!
//! let limiter = Limiter::new(MemoryStore::new(), "mails", Quota::per_minute(100));
//! assert!(limiter.check_now("ann").is_allowed());
//! ```
//!
//! By default, a quota is a token bucket with the burst of a period, and a [`MemoryStore`] keeps up to a million
//! entries. The counters end with the process.
//!
//! | word | meaning |
//! |---|---|
//! | [`Quota`] | how many units per period, with the algorithm and the burst |
//! | [`Key`] | the identity of a client |
//! | [`Charge`] | a limit's part in a request |
//! | [`Store`] | keeps the state and decides |
//! | [`Limiter`] | a store and named quotas, for limits without HTTP |
//! | [`Decision`] | allowed, wait or refused, with the [`LimitStatus`] of every limit |
//! | [`Entry`] | the model of all stores, with the state of a key |
//!
//! You give all charges of a request to the store. The store takes all charges if every enforced
//! limit admits the request, and otherwise takes no charge. The memory store decides in a single
//! atomic step. A Redis Cluster takes one step for each key, and refunds the earlier steps when a
//! later one refuses.
//!
//! [`tower-quota`]: https://docs.rs/tower-quota

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod algorithm;
mod answer;
mod bytes;
mod charge;
mod clock;
mod decide;
mod decision;
mod entry;
mod error;
#[cfg(feature = "tokio")]
mod keeper;
mod key;
mod key_hasher;
mod limit_name;
mod limiter;
mod memory;
mod name;
mod outcome;
mod penalty;
mod quota;
mod refusals;
mod status;
mod store;
#[doc(hidden)]
pub mod stored;
mod sync;
mod time;

pub use self::answer::Answer;
pub use self::charge::{Charge, ChargeMode, Operation, OwnedCharge};
pub use self::clock::{Clock, MonotonicClock};
pub use self::decide::decide;
pub use self::decision::Decision;
pub use self::entry::{DecodeError, Entry};
pub use self::error::ConfigError;
#[cfg(feature = "tokio")]
pub use self::keeper::HoldEvents;
#[cfg(feature = "tokio")]
#[doc(hidden)]
pub use self::keeper::{HoldId, HoldKeeper};
pub use self::key::Key;
#[doc(hidden)]
pub use self::key_hasher::KeyHasher;
pub use self::limiter::{AsKey, Limiter, UnknownLimit};
#[cfg(feature = "tokio")]
pub use self::limiter::{Hold, NotReady, Turn};
pub use self::memory::{MemoryStats, MemoryStore};
pub use self::name::Name;
pub use self::outcome::Outcome;
pub use self::penalty::Penalty;
pub use self::quota::{Algorithm, Quota};
pub use self::refusals::{RefusalCache, RefusalCheck, RefusalFuture, RefusalStats};
pub use self::status::{Left, LimitStatus};
pub use self::store::{BoxStore, BoxStoreError, Overloaded, Store, Undecidable};
#[doc(hidden)]
pub use self::sync::Lock;
pub use self::time::Timestamp;
