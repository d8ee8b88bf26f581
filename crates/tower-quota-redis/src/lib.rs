//! Rate limits that all instances of your service share, with counters in Redis.
//!
//! Use [`RedisStore`] in place of a `MemoryStore`:
//!
//! ```no_run
//! use tower_quota_core::{Charge, Key, Name, Quota, Store};
//! use tower_quota_redis::RedisStore;
//!
//! # async fn example() -> Result<(), tower_quota_redis::RedisStoreError> {
//! let store = RedisStore::options().prefix("orders").connect("redis://127.0.0.1:6379/").await?;
//! let (second, hour) = (Quota::per_second(10).burst(20), Quota::per_hour(1_000).sliding_window());
//! let ann = Key::owned(Name::new("user"), "ann");
//! let decision = store.check(&[Charge::new("second", &second, &ann), Charge::new("hour", &hour, &ann)]).await?;
//! println!("allowed: {}", decision.is_allowed());
//! # Ok(())
//! # }
//! ```
//!
//! * A Lua script charges either all limits of a request or no limit. In a [cluster](#clusters), a request takes one step
//!   for each partition of its keys. Under load, many requests share a call.
//! * The clock of the server decides, so the clocks of your instances do not matter.
//! * Every decision ends within a deadline, 50 ms by default. The error says whether the charges may have been taken.
//! * A call is retried only if the server cannot have run it, after `NOSCRIPT` or `MOVED`.
//! * An overloaded server still answers in time, because the store sends less while calls are slow. Other decisions
//!   fail uncharged with [`Overloaded`](RedisStoreError::Overloaded).
//! * After 0.25 s of silence, decisions fail at once. A single decision tries the server again after 50 to 400 ms.
//!
//! # Stored data
//!
//! Each client has one key, which you get from [`RedisStore::key_of`]:
//!
//! ```text
//! PREFIX:4:{TAG}:ID
//!
//! redis-cli --scan --pattern 'quota:4:*'            all clients
//! redis-cli --scan --pattern 'quota:4:*:user:ann'   one client, with readable keys
//! redis-cli PTTL KEY                                milliseconds until all limits are full; -2 if they are full
//! redis-cli GET KEY                                 the entry
//! redis-cli DEL KEY                                 resets all limits of the client
//! ```
//!
//! `4` is the version of the format, and the tag stands for a partition. The id is a keyed 96-bit hash of the key, or
//! the key itself with [`RedisOptions::readable_keys`].
//!
//! The value is an [`Entry::encode`](tower_quota_core::Entry::encode) of 8 bytes, and 20 for each bucket in use. A
//! window takes 14 bytes more, and a sliding log 14 for each distinct microsecond. Keep logs short, because the server
//! reads and writes the whole log. With 10,000 stamps, a decision takes 1 ms.
//!
//! The holds of a [concurrency limit](tower_quota_core::Quota::concurrent) are a sorted set in the same cluster slot,
//! `KEY:holds:LIMIT`, and the entry has their number and units. A member is the instant of a hold, as 7 bytes, and the score
//! is the expiry. If the hold had more than one unit, the member followed by `u` has the units, with a minus sign. A hold takes
//! about 110 bytes, and a decision takes the same time for any number of holds. If you delete the entry or the set, the units
//! are free, and a renewal reports no units. The layer then takes the units of its running requests again.
//!
//! A key expires when all limits of the client are full, so expiry loses no counts. Peeks and refusals are not written,
//! unless a limit counts refusals. If a value has another format, decisions about the client fail with
//! [`RedisStoreError::State`], and the value stays unchanged.
//!
//! Instances with the old and the new quota of a limit may run together. The store converts the entry whenever the
//! quotas take turns, and rounds against the client. Two buckets together admit at most
//! `larger + refill + n * (larger - smaller)` units. `larger` and `smaller` are the capacities, and `n` counts how often
//! a bucket is full under the smaller quota, so that its key expires and the larger quota starts full. Quotas of
//! different algorithms or periods admit at most what both quotas admit, and the same `n * (larger - smaller)`.
//!
//! If most of your clients come only once, set `CONFIG SET hz 100`. Redis then deletes expired keys in shorter pauses,
//! which lowers the 99th percentile of the latency.
//!
//! # Access rights
//!
//! You need Redis 6.2 or later, Valkey, or KeyDB (`docs/reference/servers.md` lists tested versions). With the default prefix, give
//! these rights to your user, and to a user of your sentinels:
//!
//! ```text
//! ACL SETUSER limiter on >password ~quota:4:* +evalsha +eval +time +mget +psetex +del +zadd +zcard +zcount +zrange +zrem +zremrangebyscore +zscore +pexpire
//! ACL SETUSER finder on >password +sentinel|get-master-addr-by-name
//! ```
//!
//! Add `+select` for a database other than 0, `+hello` for RESP3, `+unwatch +ping` for a pool, and
//! `+ping +cluster|slots` for a cluster. You may deny `CLIENT SETINFO` and `ROLE`.
//!
//! # Memory
//!
//! A client with one limit takes about 200 bytes until the limit is full again. Multiply by your new clients a second
//! and the seconds of a refill. 5 million made-up keys fill a gigabyte.
//!
//! Use `noeviction` with enough memory, and alert on `OOM`. A full server cannot store new clients
//! ([`RedisStoreError::Refused`]), so your `on_store_failure` decides. Clients over their limit stay refused. Under
//! `volatile-ttl`, the server evicts the entries that are full soonest, which resets the limits of these clients.
//!
//! A promoted replica may lack the last charges of its primary.
//!
//! # Clusters
//!
//! The store spreads clients over 12 partitions, each with batches and a breaker of its own. Clients cannot choose
//! their partition. Set `cluster-require-full-coverage no`, so that a dead primary stops only its own clients.
//!
//! If the keys of a request lie in several partitions, the store decides part by part, the limit of everyone last. If a
//! part refuses, the store refunds the earlier parts. The request never exceeds a limit, but until the refund the store
//! may refuse other requests. With [`RedisOptions::partitions`] of 1, one node decides in a
//! single atomic step.
//!
//! Charges of [at most](tower_quota_core::Charge::at_most) their cost report the units that all parts have. If a later
//! part has fewer units than an earlier one, the difference stays charged at the earlier one, until it refills.
//!
//! A [`Decision::refund`](tower_quota_core::Decision::refund) uses the earliest instant of all parts, and the clocks of
//! nodes differ a little. A bucket may therefore get back fewer units than were taken, and a window or a sliding log no
//! units.
//!
//! Each partition is a hash slot. While the cluster moves a slot, decisions about a twelfth of your clients fail with
//! [`RedisStoreError::Moving`]. The store does not follow `ASK`, because half of the keys are not enough to decide.
//!
//! # Runtimes
//!
//! Decisions need tokio with timers. Call [`Store::close`](tower_quota_core::Store::close) when your service ends. If
//! each of your threads has a runtime, set [`RedisOptions::runtime`].
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `tls` | `rediss://` URLs, with rustls and ring, unless you installed another crypto provider first |
//! | `credentials` | `RedisOptions::credentials`, for tokens that expire |
//! | `pool` | `RedisOptions::pool`, for a pool of `deadpool-redis` |

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod batch;
mod breaker;
mod clock;
mod config_error;
#[cfg(feature = "credentials")]
mod credentials;
mod error;
mod error_counts;
mod keys;
mod link;
mod location;
mod locator;
mod lock;
mod options;
mod pause;
mod script;
mod slots;
mod spread;
mod stats;
mod store;
mod store_request;
mod template;
mod wire;

pub use self::config_error::RedisConfigError;
#[cfg(feature = "credentials")]
pub use self::credentials::Credentials;
pub use self::error::RedisStoreError;
pub use self::error_counts::RedisErrorCounts;
pub use self::locator::RedisLocator;
pub use self::options::RedisOptions;
pub use self::stats::RedisStats;
pub use self::store::RedisStore;
