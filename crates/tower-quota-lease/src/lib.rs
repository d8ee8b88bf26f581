//! Leases let an instance decide hot clients in memory, while all instances together never exceed the quota.
//!
//! [`Leased`] wraps a shared store. Your requests are decided in this order:
//!
//! 1. The store decides clients that ask rarely, in an exact round trip.
//! 2. If a client is hot, the instance charges the store for some units in advance. These units are a lease. The instance
//!    then decides requests from memory, and a task fetches the next lease.
//! 3. If the store has few units left, the instance pauses for a quarter of a lease after a call, and refuses requests
//!    meanwhile. The store keeps the units of that time.
//! 4. When a lease ends, the instance refunds the unspent units.
//!
//! ```
//! use std::time::Duration;
//! use tower_quota_core::{Limiter, MemoryStore, Quota};
//! use tower_quota_lease::{LeaseOptions, Leased};
//!
//! // In production, wrap a RedisStore.
//! let options = LeaseOptions::default().longest(Duration::from_millis(100));
//! let store = Leased::with_options(MemoryStore::new(), options);
//! let limiter = Limiter::new(store, "requests", Quota::per_second(1_000));
//! # let _ = limiter;
//! ```
//!
//! # Why the total is exact
//!
//! A lease is an early charge. A lease lasts for a term `T`, counted from before the call. An instance therefore spends
//! units at most `T` after the charge. All units that instances spend in an interval were charged in the same interval,
//! extended by `T`. The store counts by a quota that leaves room for `T`:
//!
//! | algorithm | quota in the store | you give up |
//! |---|---|---|
//! | token bucket, GCRA | a capacity smaller by the refill of `T` | at most a twentieth of the burst |
//! | fixed window | the same quota, and a lease ends with the window | no units |
//! | sliding window, sliding log | a period longer by `T` | at most a hundredth of the rate |
//! | leaky bucket, limits with penalties or counted refusals | the same quota, without leases | no units |
//!
//! `T` is at most half a second, a tenth of a fixed window, and 50 ms for a bucket with a burst of one second. Quotas with
//! a shorter `T` than 5 ms have no leases, nor do buckets of fewer than 100 units.
//!
//! # Refusals
//!
//! A [`RefusalCache`](tower_quota_core::RefusalCache) stands between the leases and the store. A client over a leased limit
//! costs few calls, and stays refused during an outage. If you put another cache around this store, as the layer does, the
//! outer cache remembers the other limits.
//!
//! A client who is alone and obeys [`retry_after`](tower_quota_core::Decision::retry_after) is admitted. The first request
//! after a pause waits for the next lease, or asks the store.
//!
//! # Caveats
//!
//! * Use the same [`longest`](LeaseOptions::longest) in all instances that share a store. Otherwise the store converts the
//!   counters of a client. A sliding window or log may then refuse the client for as long as the client asks, and a bucket
//!   may admit the leased units in addition.
//! * [`remaining`](tower_quota_core::LimitStatus::remaining) counts the leases of other instances as used.
//! * The store refuses a cost above the smaller burst for good.
//! * Requests that wait, settled requests and [forced](tower_quota_core::ChargeMode::Forced) charges are exact round trips.
//!   Use [`Charge::exact`](tower_quota_core::Charge::exact) for a limit whose every unit counts.
//! * Without [`close`](tower_quota_core::Store::close), an instance loses its unspent units until the quota refills.
//! * After a reset, other instances may spend their leases for up to `T`. A window admits the units that they refund.
//! * Leases need a tokio runtime with timers, and are lost with their runtime.
//! * If the clock of a virtual machine stops with the machine, the machine may spend its leases after it resumes.
//! * If you refund a request that mixes leased and other limits, mark your charges as
//!   [`refundable`](tower_quota_core::Charge::refundable). Otherwise a log or a new window returns no units.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod answer;
mod demand;
mod grants;
mod lease_call;
mod leased;
mod operations;
mod options;
mod plan;
mod pool;
mod pools;
mod regional;
mod request;
mod shared;
mod stats;

pub use self::leased::Leased;
pub use self::options::LeaseOptions;
pub use self::regional::{RegionShares, RegionSharesError, Regional};
pub use self::stats::LeaseStats;
