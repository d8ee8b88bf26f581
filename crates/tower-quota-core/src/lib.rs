//! Exact rate limiting, with the data types, the algorithms and the in-process store of tower-quota.
//!
//! If you write a service, use [`tower-quota`], which adds the tower layer and re-exports this crate. If you write a store, use
//! this crate. The crate needs no HTTP, no Redis and no async runtime. Only waits for a turn need tokio, behind the feature
//! `tokio`. The feature `calendar` adds `Quota::calendar`, for days, weeks, months and years in a time zone.
//!
//! ```
//! use tower_quota_core::{Limiter, MemoryStore, Quota};
//!
//! let limiter = Limiter::new(MemoryStore::new(), "mails", Quota::per_minute(100));
//! assert!(limiter.check_now("ann").is_allowed());
//! ```
//!
//! By default, a quota is a token bucket with the burst of one period, and a store has room for a million entries. The counters
//! of a [`MemoryStore`] end with the process.
//!
//! | word | meaning |
//! |---|---|
//! | [`Quota`] | algorithm, units per period and burst |
//! | [`Key`] | the identity that a limit counts |
//! | [`Charge`] | the part of one limit in a request, as plain data |
//! | [`Store`] | keeps the state and decides, for example [`MemoryStore`] |
//! | [`Limiter`] | a store with named quotas, without HTTP |
//! | [`Decision`] | allowed, wait or refused, and the [`LimitStatus`] of each limit |
//!
//! A store reads the time and the state of each limit once, and each limit judges its charge. If all enforced limits admit the
//! request, the store takes all charges. [`Entry`] is the model of this step and of the stored form. Every store agrees with the
//! model exactly.
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
pub use self::refusals::{RefusalCache, RefusalFuture, RefusalStats};
pub use self::status::{Left, LimitStatus};
pub use self::store::{BoxStore, BoxStoreError, Store};
pub use self::time::Timestamp;
