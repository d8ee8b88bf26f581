//! Rate limits that all instances of a service share, with counters in Redis.
//!
//! Use [`RedisStore`] in place of a `MemoryStore`. All instances then count the same limits together.
//!
//! ```no_run
//! use tower_quota_core::{Charge, Key, Name, Quota, Store};
//! use tower_quota_redis::RedisStore;
//!
//! # async fn example() -> Result<(), tower_quota_redis::RedisStoreError> {
//! let store = RedisStore::connect("redis://127.0.0.1:6379/").await?;
//! let (second, hour) = (Quota::per_second(10).burst(20), Quota::per_hour(1_000).sliding_window());
//! let ann = Key::owned(Name::new("user"), "ann");
//! let decision = store.check(&[Charge::new("second", &second, &ann), Charge::new("hour", &hour, &ann)]).await?;
//! println!("allowed: {}", decision.is_allowed());
//! # Ok(())
//! # }
//! ```
//!
//! * A Lua script decides all limits of a request in one step: all are charged, or no limit is. Under load, many requests
//!   share a call.
//! * The clock of the server decides. The clocks of your instances do not matter.
//! * Every decision ends within a deadline, 50 ms by default. The error says whether the charges may have been taken.
//! * A call is repeated only if the server cannot have run it, after `NOSCRIPT` or `MOVED`.
//! * An overloaded server still answers in time, because the store sends less while calls are slow. Decisions that are not
//!   sent within the deadline fail uncharged with [`Overloaded`](RedisStoreError::Overloaded).
//! * After 0.25 s of silence, decisions fail at once. A single decision tries the server again after 50 to 400 ms.
//!
//! [`RedisStore::stats`] returns statistics. Call [`Store::close`](tower_quota_core::Store::close) when your service ends.
//!
//! # Stored data
//!
//! Each client has one key, with the name that [`RedisStore::key_of`] returns:
//!
//! ```text
//! PREFIX:4:{TAG}:ID
//! ```
//!
//! `4` is the version of the format. The tag stands for a partition. The id is a keyed 96-bit hash of the client's key, or
//! the key itself with [`RedisOptions::readable_keys`]. The value has the format of
//! [`Entry::encode`](tower_quota_core::Entry::encode): 8 bytes, and about 20 for each bucket in use. A window takes about 14
//! bytes more, and a sliding log 14 bytes for each distinct microsecond. Use short logs, because the server reads and
//! writes the whole log: with 10,000 stamps a decision takes 1 ms.
//!
//! A key expires when all limits of the client are full, so expiry loses nothing. Peeks and refusals write nothing unless a
//! limit counts refusals. Instances with an old and a new quota for the same limit may run at the same time.
//!
//! ```text
//! redis-cli --scan --pattern 'quota:4:*'            all clients
//! redis-cli --scan --pattern 'quota:4:*:user:ann'   one client, with readable keys
//! redis-cli PTTL KEY                                milliseconds until all limits are full
//! redis-cli DEL KEY                                 resets all limits of the client
//! ```
//!
//! A value in another format fails the decisions about its client with [`RedisStoreError::State`], and stays unchanged.
//!
//! If many clients come only once, set `CONFIG SET hz 100`. Redis then deletes expired keys in short pauses: p99 was 3 ms
//! instead of 14.
//!
//! # Access rights
//!
//! You need Redis 6.2 or later, Valkey, or KeyDB. `docs/REDIS.md` lists the tested versions. The rights of a user, with the
//! default prefix, are:
//!
//! ```text
//! ACL SETUSER limiter on >password ~quota:4:* +evalsha +eval +time +mget +psetex +del
//! ```
//!
//! The user also needs `+select` for a database other than 0, `+hello` for RESP3, `+unwatch +ping` for a pool, and
//! `+ping +cluster|slots` for a cluster.
//!
//! `CLIENT SETINFO` and `ROLE` may be denied. Sentinels have users of their own, with one right:
//!
//! ```text
//! ACL SETUSER finder on >password +sentinel|get-master-addr-by-name
//! ```
//!
//! # Memory
//!
//! A client with one limit takes about 200 bytes until its limits are full again. Your server therefore needs 200 bytes
//! times the new clients a second times the seconds in which their limits refill. A flood of made-up keys takes the same,
//! and 5 million keys fill a gigabyte.
//!
//! Use `noeviction` with enough memory, and alert on `OOM`. A full server refuses to write new clients
//! ([`RedisStoreError::Refused`]), your `on_store_failure` decides, and clients over their limit stay refused. Under
//! `volatile-ttl`, the server evicts the entries that are full soonest, which resets the limits of these clients.
//!
//! A replica that is promoted may lack the last writes of its primary. The charges of these writes are given back.
//!
//! # Clusters
//!
//! The store spreads clients over 12 partitions, each with batches and a breaker of its own. A dead primary leaves the
//! clients of other primaries alone, if the cluster has `cluster-require-full-coverage no`. The partitions lie in hash
//! slots at equal distances, and clients cannot choose their slot.
//!
//! If the limits of a request count clients in several partitions, the store decides part by part, the limit of everyone
//! last. If a part refuses, the store refunds the earlier parts. Such a request never exceeds a limit. For a moment, the
//! store may refuse as many requests as are under way and will be refunded. With [`RedisOptions::partitions`] of 1, every
//! request is decided in one step, on one node.
//!
//! [`Decision::refund`](tower_quota_core::Decision::refund) has the earliest instant of all parts, and clocks of nodes
//! differ a little. A bucket may therefore get back less than was taken, and a window or a sliding log nothing.
//!
//! While the cluster moves a slot, decisions about the keys of the slot fail with [`RedisStoreError::Moving`], because half
//! of the keys are not enough to decide.
//!
//! # Runtimes
//!
//! Connections live on the tokio runtime that first used them. If each of your threads has a runtime, name one that lasts
//! with [`RedisOptions::runtime`]. Decisions need the time driver of tokio.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `tls` | `rediss://` URLs, with rustls and ring, unless you installed another crypto provider first |
//! | `credentials` | `RedisOptions::credentials`: tokens that are renewed before they end |
//! | `pool` | `RedisOptions::pool`: connections from a pool of `deadpool-redis` |

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod batch;
mod breaker;
mod config_error;
mod connection;
#[cfg(feature = "credentials")]
mod credentials;
mod error;
mod error_counts;
mod keys;
mod link;
mod location;
mod options;
mod pause;
mod question;
mod script;
mod slots;
mod spread;
mod stats;
mod store;
mod template;
mod wire;

pub use self::config_error::RedisConfigError;
pub use self::connection::RedisConnection;
#[cfg(feature = "credentials")]
pub use self::credentials::Credentials;
pub use self::error::RedisStoreError;
pub use self::error_counts::RedisErrorCounts;
pub use self::options::RedisOptions;
pub use self::stats::RedisStats;
pub use self::store::RedisStore;
