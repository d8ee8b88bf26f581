//! Leases: hot clients are decided in memory, and all instances together never exceed the quota.
//!
//! [`Leased`] wraps any [`Store`](tower_quota_core::Store). What it decides, in this order:
//!
//! 1. A client that asks now and then is decided by the store, in one exact round trip.
//! 2. For a client that asks several times within a lease, the instance charges the store for some units in advance: a
//!    lease. Its requests are then decided from memory, while the next lease is fetched in the background.
//! 3. When little is left in the store, leases shrink to exact round trips. After a short or refused one, the instance
//!    asks again a quarter of a lease later, and refuses in between.
//! 4. Units that are not used are refunded when the lease ends.
//!
//! ```
//! use tower_quota_core::{Key, Limiter, MemoryStore, Quota};
//! use tower_quota_lease::Leased;
//!
//! // In production the inner store is a RedisStore.
//! let limiter = Limiter::new(Leased::new(MemoryStore::new()), "requests", Quota::per_second(1_000));
//! # let _ = limiter;
//! ```
//!
//! Customised: leases of at most 20 ms, for at most a thousand keys.
//!
//! ```
//! use std::time::Duration;
//! use tower_quota_core::MemoryStore;
//! use tower_quota_lease::{LeaseOptions, Leased};
//!
//! let options = LeaseOptions::default().longest(Duration::from_millis(20)).keys(1_000);
//! let store = Leased::with_options(MemoryStore::new(), options);
//! # let _ = store;
//! ```
//!
//! # Why the total is exact
//!
//! A lease is a charge made early. It lasts `T`, counted from before the call was sent. Units are therefore spent between
//! their charge and `T` later, and what is spent in an interval was charged in the same interval begun `T` earlier. The
//! store counts by a quota that allows for it:
//!
//! | algorithm | the store counts by | so this much is given up |
//! |---|---|---|
//! | token bucket, GCRA | a capacity smaller by what is refilled in `T` | a twentieth of the burst at most, no rate |
//! | fixed window | the same quota; a lease ends with its window | nothing |
//! | sliding window, sliding log | a period longer by `T` | a hundredth of the rate at most |
//! | leaky bucket; limits with penalties or counted refusals | the same quota; not leased | nothing |
//!
//! Requests that wait or whose cost is settled are not leased, nor are their other limits: a refund is of one instant.
//! They count by the stored quota as all requests of their limit, so that nothing is converted between them.
//!
//! `T` is half a second, and shorter where the third column would be exceeded: 50 ms for a bucket with
//! a burst of one second. It is a tenth of a fixed window at most. A quota for which it would be under 5 ms is not leased, nor a bucket of
//! fewer than 100 units. A sliding window keeps its own bound, as without leases.
//!
//! # Caveats
//!
//! * [`remaining`](tower_quota_core::LimitStatus::remaining) counts what other instances hold as used: it is a lower bound
//!   as of the last call, at most a lease ago. A peek, and a request that the store decides, are as of now.
//! * A bucket's cost must fit into the smaller burst, or it never fits: see the table.
//! * The clock of an instance must not stop for a time that the store's clock runs on: a virtual machine that is suspended
//!   may spend what it has leased before, once, after it goes on.
//! * A [`RefusalCache`](tower_quota_core::RefusalCache), as the layer has one, goes around this store and not into it.
//!   The cache remembers the refusals of limits that are not leased. Those of leased limits are remembered here.
//! * The stored quota differs from the limit's, by the length of a lease. All instances of one Redis must use leases with
//!   one [`longest`](LeaseOptions::longest), or none. Otherwise a client that meets both kinds has its counter converted
//!   each time. What it has used of a sliding window or log then counts from that instant again, so that it may be
//!   refused for as long as it asks. A bucket is cut to the smaller burst, and may be exceeded by what is leased. Fixed
//!   windows stay exact.
//! * An instance that ends without [`close`](tower_quota_core::Store::close) loses its leased units until they refill.
//! * After a reset, other instances may spend what they have leased before, for up to `T`. What is left then is refunded,
//!   and a window that has forgotten the charge admits that much more.
//! * Leases need a tokio runtime with its time driver. Outside of a runtime, each request is an exact round trip, if the
//!   store inside can decide there; in one without that driver, requests panic.
//! * A lease lives on the runtime of the request that asked for it, and is lost with it: a program that makes a runtime for
//!   each job gains nothing from leases.
//! * [`retry_after`](tower_quota_core::Decision::retry_after) is no promise where little is left: a client that comes back
//!   within a quarter of a lease after another request may find that a lease is asked for in its place. One that waits
//!   for longer is admitted, if no other takes the units.
//! * A request that a lease and the store admitted together has the lease's instant. If it is refunded without being
//!   [`refundable`](tower_quota_core::Charge::refundable), a log that is not leased, or a window that began since, gives
//!   nothing back.
//! * A limit of which every unit counts opts out by [`Charge::exact`](tower_quota_core::Charge::exact).

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
