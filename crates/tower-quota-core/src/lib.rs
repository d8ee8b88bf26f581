//! Exact rate limiting: the data types, the algorithms and the in-process store of tower-quota.
//!
//! This crate knows nothing of HTTP and Redis, and needs no async runtime: only waiting for a turn does, behind the
//! feature `tokio`. Services use it through [`tower-quota`], which adds the tower layer and re-exports everything here;
//! authors of stores use it directly.
//!
//! ```
//! use tower_quota_core::{Limiter, MemoryStore, Quota};
//!
//! let limiter = Limiter::new(MemoryStore::new(), "mails", Quota::per_minute(100));
//! assert!(limiter.check_now("ann").is_allowed());
//! ```
//!
//! The feature `calendar` adds `Quota::calendar`, for days, weeks, months and years in a time zone.
//!
//! Defaults: a token bucket whose burst is the units of one period, and room for a million entries in memory.
//!
//! A request is decided in this order, in one atomic step:
//!
//! 1. Each limit of the request becomes a [`Charge`]: a name, a quota, a key and a cost.
//! 2. The [`Store`] reads the time and each limit's state, and each limit judges its charge.
//! 3. If all enforced limits admit, all charges are taken. Otherwise none is.
//! 4. The [`Decision`] has the outcome and the status of each limit.
//!
//! Caveats: the counters of a [`MemoryStore`] are lost when the process ends, and no other process sees them.
//!
//! | word | here |
//! |---|---|
//! | [`Quota`] | how much: algorithm, units per period, burst |
//! | [`Key`] | the identity that is counted |
//! | [`Charge`] | one limit's part in a request, as data |
//! | [`Store`] | keeps the state and decides; [`MemoryStore`] keeps it in this process |
//! | [`Limiter`] | a store and named quotas: limits without HTTP |
//! | [`Decision`] | allowed, wait or refused, and each limit's [`LimitStatus`] |
//!
//! [`Entry`] is the model: everything stored for one key, its stored form, and the pure step that decides on it. Every
//! store agrees with it exactly.
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
