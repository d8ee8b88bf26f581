//! Leases let your instances decide hot clients in memory, and together never exceed the quota.
//!
//! [`Leased`] wraps a shared store:
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
//! 1. The store decides clients with few requests, in an exact round trip.
//! 2. If a client is hot, the instance charges the store for some units in advance, decides requests in memory, and
//!    fetches the next lease in a task. Requests without leased units wait for this lease, and ask the store only if it
//!    has too few units. During an outage, they may wait for two deadlines of the store.
//! 3. After a call that finds few units, the instance refuses requests for a quarter of a lease. The next request waits
//!    for a lease or asks the store, so a client who is alone and obeys
//!    [`retry_after`](tower_quota_core::Decision::retry_after) is admitted.
//! 4. When a lease ends, the instance refunds the unspent units.
//!
//! # Why the total never exceeds the quota
//!
//! A lease lasts for a term `T` from before the call. Units that instances spend in an interval were therefore charged
//! in the interval extended by `T`. The store counts by a quota that leaves room for `T`:
//!
//! | algorithm | quota in the store | you give up |
//! |---|---|---|
//! | token bucket, GCRA | a capacity smaller by the refill of `T` | at most a twentieth of the burst |
//! | fixed window | the same; a lease ends with the window | no units |
//! | sliding window, sliding log | a period longer by `T` | at most a hundredth of the rate |
//! | leaky bucket, limits with penalties or counted refusals | the same; no leases | no units |
//!
//! `T` is at most half a second, a tenth of a fixed window, and 50 ms for a bucket with a burst of one second. Buckets
//! of fewer than 100 units have no leases, nor have quotas with `T` below 5 ms.
//!
//! # Refusals
//!
//! A [`RefusalCache`](tower_quota_core::RefusalCache) remembers refusals of leased limits, so a client over a limit
//! costs few calls and stays refused during an outage. A cache around this store, as in the layer, remembers the other
//! limits.
//!
//! # Caveats
//!
//! * Use the same [`longest`](LeaseOptions::longest) in all instances that share a store. Otherwise the store converts
//!   the counters of a client. A sliding window or log may then refuse a client who keeps sending requests, and a
//!   bucket may admit the leased units in addition.
//! * [`remaining`](tower_quota_core::LimitStatus::remaining) counts the leases of other instances as used.
//! * The store always refuses a cost above the smaller burst.
//! * Requests that wait, settled requests and [forced](tower_quota_core::ChargeMode::Forced) charges are exact round
//!   trips. Use [`Charge::exact`](tower_quota_core::Charge::exact) if every unit counts.
//! * Call [`close`](tower_quota_core::Store::close), or your instance loses its unspent units until the quota refills.
//! * After a reset, other instances may spend their leases for up to `T`, and a window admits refunded units. A bucket
//!   or a log admits refunded units only if it was charged before and after the reset within the same microsecond.
//! * Leases need a tokio runtime with timers, and are lost with their runtime.
//! * A virtual machine whose clock stops may spend its leases after it resumes.
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
