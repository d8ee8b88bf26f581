//! tower-quota's counters in Redis, shared by every instance of a service.
//!
//! [`RedisStore`] is a [`Store`](tower_quota_core::Store): put it where a `MemoryStore` was, and the same limits are counted
//! together by all instances.
//!
//! 1. **One call decides many requests.** All limits of a request, whatever their algorithms and whoever they count, are
//!    decided together by one Lua script: all are charged or none. Under load, requests that wait for the server travel
//!    together in one `EVALSHA`, each decided on what those before it have left; an idle store sends each at once. A
//!    server that does not know the script is sent it, once.
//! 2. **The server tells the time.** The script reads Redis' `TIME` once. No instance's clock plays a part.
//! 3. **Integers only.** The script is the model in `tower-quota-core`, function by function, in numbers that Lua counts
//!    exactly. A test runs both side by side on random policies and traces.
//! 4. **Every call ends.** A deadline, 50 ms unless told otherwise, covers waiting for a connection and for the answer.
//! 5. **Nothing is counted twice.** The only call that is repeated is one that the server answered with `NOSCRIPT`,
//!    which it has not run, or sent elsewhere with `MOVED`. Any other failure is an error that says whether the
//!    charges may have been taken.
//! 6. **A server that does not answer is left alone.** After five calls in a row without an answer the store stops
//!    asking, and says so within microseconds, while one `PING` about every 100 ms looks whether the server is well.
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
//! A subject is known by a keyed 96-bit hash of its key. Its state is an instant and, for each limit that is not whole,
//! a number for the quota that counted it, and its counters: 43 bytes for three buckets, 14 more for each distinct
//! microsecond in a sliding log. A sliding log is read and written whole, so one of many thousands of units is slow:
//! with 10,000 stamps a decision takes the server 1 ms, and giving back an old one of them 3 ms. It is
//! kept under the prefix (`quota` unless told otherwise), the version of the stored form, and a hash tag:
//!
//! | key | type | holds |
//! |---|---|---|
//! | `PREFIX:2:{0}:MINUTE` | hash | the subjects that will be whole before the minute after this one is over; unlinked then |
//! | `PREFIX:2:{0}:HASH` | string | a subject that takes longer |
//! | `PREFIX:2:{0}:quotas` | hash | the newest minute, and each quota's numbers, about 120 bytes for each that was ever used |
//!
//! Every key expires, and what is in it is whole by then, so expiry forgets nothing. (The quotas are kept for 400 days
//! after the last charge. A limit that was last charged before, and is no longer asked for, is whole.) Peeks and
//! refusals write nothing, unless a limit counts refusals. A quota may change under a limit's name, and instances with
//! the old and the new one may run side by side: each converts what the other has stored.
//!
//! # What the server must allow
//!
//! Redis 5 or later, or Valkey. For an ACL, with the default prefix:
//!
//! ```text
//! ACL SETUSER limiter on >password ~quota:2:* +evalsha +eval +time +hmget +hget +mget +hset +set +pttl +pexpire +hdel +del +unlink
//! ```
//!
//! The script uses all but the first two with the caller's rights. It is told one key and derives the others' names from
//! it (Dragonfly wants `--default_lua_flags=allow-undeclared-keys`); all of them share its hash tag, hence its cluster
//! slot. Connecting further sends `AUTH` if the URL has a password, `SELECT` if it has a database other than 0
//! (`+select`), `HELLO` if it asks for RESP3 (`+hello`), and `CLIENT SETINFO`, which may be denied, as may the `PING` of
//! the breaker and the `ROLE` that a primary under sentinels is asked for. A pool checks a connection with `UNWATCH` and
//! `PING` when it hands it out (`+unwatch +ping`), a cluster's client with `PING`, and it asks for the slots
//! (`+ping +cluster|slots`). Sentinels have users of their own, who need one right:
//!
//! ```text
//! ACL SETUSER finder on >password +sentinel|get-master-addr-by-name
//! ```
//!
//! # When memory runs out
//!
//! Under `noeviction` the server refuses calls that would write ([`RedisStoreError::Refused`], code `OOM`); what a
//! request gets then is the limiter's choice. That is what we recommend, with enough memory. Under any policy that evicts,
//! a whole minute's hash may go at once, and everyone in it is set free.
//!
//! A replica that is promoted may lack the last writes of the server it replaces: what was charged in them is given back.
//!
//! # Sentinels and clusters
//!
//! [`RedisStore::sentinel`] asks all sentinels for the primary whenever the connection is lost, in doubt or leads to a
//! replica, and uses it as soon as the first of them knows it.
//!
//! [`RedisStore::cluster`] spreads subjects over 64 partitions, `{0}` to `{63}` in the keys' names, each with batches and a
//! breaker of its own: one dead primary leaves the others' subjects alone, if the cluster has
//! `cluster-require-full-coverage no`. Keys are hashed, so no byte of a client's choice picks a slot. A policy whose limits
//! count subjects in several partitions, such as a client and everyone, is decided on part by part, everyone last. When
//! a part refuses, what the others took is given back: no more is ever admitted than every limit allows. For as long as
//! that takes, as much may be refused as is under way at that moment and will be given back. With
//! [`RedisOptions::partitions`] of 1 each policy is decided in one step, on one node.
//!
//! A refusal is as if it had been decided in one step: every part judges it and counts it where its limits count refusals.
//! [`Decision::refund`](tower_quota_core::Decision::refund) has one instant for all parts, and the nodes' clocks differ a
//! little: a sliding log may not find its stamp, and then gives nothing back, and at the edge of a window it may be the
//! neighbouring one that is given something back, or none.
//!
//! While a slot is moved, calls about its subjects fail with [`RedisStoreError::Moving`], from the first key that leaves
//! (or that the old owner does not have) until the new owner has all of them: half of the keys cannot tell who is
//! within a limit. What requests get meanwhile is the limiter's choice, as for a server that is away, but the breaker does
//! not open.
//!
//! # In trouble
//!
//! `docs/FAULTS.md` has, for each fault that was brought about on real servers, how long a request waited, what was
//! admitted, and how soon all was well again.
//!
//! # TLS
//!
//! The feature `tls` makes `rediss://` URLs work, with the certificates that the system trusts or those of
//! `RedisOptions::root_certificates`. It uses rustls with ring, unless the program has chosen a cryptography before the
//! first connection. Certificates of the client's own go into a [`redis::Client`].

#![forbid(unsafe_code)]

mod batch;
mod breaker;
mod error;
mod health;
mod keys;
mod link;
mod options;
mod question;
mod script;
mod slots;
mod spread;
mod store;
mod template;
mod wire;

pub use self::error::{RedisConfigError, RedisStoreError};
pub use self::options::RedisOptions;
pub use self::store::RedisStore;
