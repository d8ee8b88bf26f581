//! Counters in Redis for tower-quota, shared by every instance of a service.
//!
//! [`RedisStore`] is a [`Store`](tower_quota_core::Store): put it where a `MemoryStore` was, and the same limits are
//! counted together by all instances.
//!
//! 1. **One call decides many requests.** All limits of a request, whatever their algorithms and keys, are decided
//!    together by one Lua script: all are charged or none. Under load, requests that wait for the server leave
//!    together in one `EVALSHA`, each decided on what those before it have left; an idle store sends each at once. A
//!    server that does not know the script is sent it, once.
//! 2. **The server tells the time.** The script reads Redis' `TIME` once. No instance's clock plays a part.
//! 3. **Integers only.** The script is the model in `tower-quota-core`, function by function, in numbers that Lua
//!    counts exactly. A test runs both side by side on random policies and traces.
//! 4. **Every call ends.** A deadline, 50 ms by default, covers waiting for a connection, for a turn and for the
//!    answer.
//! 5. **Nothing is counted twice.** The only call that is repeated is one that the server answered with `NOSCRIPT`,
//!    which it has not run, or sent elsewhere with `MOVED`. Any other failure is an error that says whether the
//!    charges may have been taken.
//! 6. **An overloaded server still answers in time.** The store sends less at once while calls are slow. Decisions wait
//!    their turn, and the newest go first when the oldest has waited for half of the deadline. A decision that is not sent
//!    within the deadline fails uncharged with [`Overloaded`](RedisStoreError::Overloaded).
//! 7. **A server that does not answer is left alone.** After five failures in a row, 0.25 s of silence, decisions fail
//!    within microseconds, uncharged. A single decision tries the server again after a pause of at most 400 ms.
//!    When it is answered the load returns in steps.
//!
//! [`RedisStore::stats`] shows all of it in figures, and [`Store::close`](tower_quota_core::Store::close) waits for
//! what is under way when a service ends.
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
//! # What is stored
//!
//! One key per client, a string under the name that [`RedisStore::key_of`] returns:
//!
//! ```text
//! PREFIX:4:{TAG}:ID
//! ```
//!
//! The prefix is `quota` unless another is chosen. `4` is the version of the form. The tag stands for a partition;
//! without a cluster there is one. The id is a keyed 96-bit hash of the client's key in base64url, or the key itself
//! with [`RedisOptions::readable_keys`].
//!
//! The string is the client's entry, in the form that [`Entry::encode`](tower_quota_core::Entry::encode) gives and
//! [`Entry::decode`](tower_quota_core::Entry::decode) reads: 8 bytes, and about 20 for each bucket of which something
//! is used. A window takes about 14 bytes more; a sliding log 14 for each distinct microsecond. A log is read and
//! written as one piece, so one of many thousands of units is slow: with 10,000 stamps a decision takes the server 1
//! ms, and the refund of an old one of them 3 ms.
//!
//! Each key expires when nothing is used of any limit, so expiry loses nothing. Peeks and refusals write nothing,
//! unless a limit counts refusals. A quota may change under a limit's name, and instances with the old and the new one
//! may run side by side: each converts what the other has stored. Nothing else is stored, so nothing accumulates.
//!
//! ```text
//! redis-cli --scan --pattern 'quota:4:*'            all clients
//! redis-cli --scan --pattern 'quota:4:*:user:ann'   one of them, with readable keys
//! redis-cli PTTL KEY                                milliseconds until nothing is used
//! redis-cli GET KEY                                 the entry
//! redis-cli DEL KEY                                 forgets the client: all limits are full
//! ```
//!
//! A string that is no entry of this version makes decisions about its client fail with [`RedisStoreError::State`], and
//! stays as it is. Of limits that a request does not ask for, only the length and the end of the slot are read; the rest is
//! kept as it is.
//!
//! Redis deletes expired entries ten times a second, for up to 25 ms. Where many clients come for a moment, `CONFIG SET hz
//! 100` makes these pauses short: p99 was 3 ms instead of 14.
//!
//! # What the server must allow
//!
//! Redis 6.2 or later, Valkey, or KeyDB: `docs/REDIS.md` lists the versions that were tested, and what was not. For an
//! ACL, with the default prefix:
//!
//! ```text
//! ACL SETUSER limiter on >password ~quota:4:* +evalsha +eval +time +mget +psetex +del
//! ```
//!
//! The script uses all but the first two with the caller's rights. All keys that it uses are declared, as proxies and
//! servers other than Redis require, and those of one call share their hash tag, hence their cluster slot. Connecting
//! further sends `AUTH` if the URL has a password, `SELECT` if it has a database other than 0 (`+select`), `HELLO` if
//! it asks for RESP3 (`+hello`), and `CLIENT SETINFO`, which may be denied, as may the `ROLE` that a primary under
//! sentinels is asked for. A pool checks a connection with `UNWATCH` and `PING` when it hands it out
//! (`+unwatch +ping`). In a cluster nodes are asked for a `PING` and for the slots (`+ping +cluster|slots`). Sentinels
//! have users of their own, who need one right:
//!
//! ```text
//! ACL SETUSER finder on >password +sentinel|get-master-addr-by-name
//! ```
//!
//! On a server alone or behind a pool, no command of the categories `@admin` and `@dangerous` is needed.
//!
//! # When memory runs out
//!
//! A client with one limit takes about 200 bytes until its limits are full again. Your server therefore needs 200 bytes
//! times the new clients a second times the seconds in which their limits refill. A flood of made-up keys takes the same,
//! and 5 million keys fill a gigabyte.
//!
//! Under `noeviction`, a full server refuses to write new clients ([`RedisStoreError::Refused`], code `OOM`), and your
//! `on_store_failure` decides. Clients over their limit stay refused. Under `volatile-ttl`, the server evicts the entries
//! that are full soonest, and the limits of an evicted client are full again. Use `noeviction` with enough memory, and
//! alert on `OOM`.
//!
//! A replica that is promoted may lack the last writes of the server it replaces: what was charged in them is given
//! back.
//!
//! # Sentinels and clusters
//!
//! [`RedisOptions::sentinel`] asks all sentinels for the primary whenever the connection is lost, in doubt or leads to a
//! replica.
//!
//! [`RedisOptions::cluster`] spreads clients over 12 partitions, each with batches and a breaker of its own: one dead
//! primary leaves the others' clients alone, if the cluster has `cluster-require-full-coverage no`. The tags of the
//! partitions lie in hash slots at equal distances, so any number of nodes holds equal shares, give or take one
//! partition. Keys are hashed, so no byte of a client's choice picks a slot. A policy whose limits count clients in
//! several partitions, such as a client and everyone, is decided on part by part, everyone last, or first while everyone
//! is refused. When a part refuses, what the others took is refunded: no more is ever admitted than every limit allows.
//! For as long as that takes, as much may be refused as is under way at that moment and will be refunded, and a bucket
//! may lose what it refills meanwhile. Nothing is taken anywhere while the
//! breaker of a part is open. With [`RedisOptions::partitions`] of 1 each policy is decided in one step, on one node.
//!
//! A refusal is as if it had been decided in one step: every part judges it and counts it where its limits count
//! refusals. A part that fails then does not change the answer, which has no status of its limits.
//! [`Decision::refund`](tower_quota_core::Decision::refund) has one instant for all parts, the earliest. Parts are
//! decided one after the other, on nodes whose clocks differ a little. So a bucket gets back less than it could by what
//! it refills in that time (and may show a unit less for as long), never more than was taken. A sliding log may not
//! find its stamp, and then gives nothing back. At the edge of a window it may be the neighbouring one that is given
//! something back, or none. Every part of a refund is asked, also when another fails.
//!
//! A node that is away costs the others no connection and no call: it is dialled alone, and if it is silent, another is
//! asked for the slots' owners, at most a few times a second, on the connection there is. Only when a slot has another
//! owner is a new client made.
//!
//! While a slot is moved, calls about its keys fail with [`RedisStoreError::Moving`], from the first key that leaves
//! (or that the old owner does not have) until the new owner has all of them: half of the keys cannot tell who is
//! within a limit. What requests get meanwhile is the limiter's choice, as for a server that is away, but the breaker
//! does not open.
//!
//! # Runtimes
//!
//! Connections live on the tokio runtime that first used them, and calls on that of their callers. A program with a
//! runtime for each thread or job names one that lasts with [`RedisOptions::runtime`], or makes a store for each. A
//! decision has a deadline, so it is awaited in a runtime with its time driver: outside of one it panics.
//!
//! # Faults
//!
//! `docs/FAULTS.md` lists the faults that were produced on real servers: how long requests waited, what was admitted,
//! and how soon decisions were made again.
//!
//! # TLS
//!
//! The feature `tls` makes `rediss://` URLs work, with the certificates that the system trusts or those of
//! `RedisOptions::root_certificates`. It uses rustls with ring, unless the program has chosen a cryptography before the
//! first connection. Certificates of the client's own go into a [`redis::Client`].

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
