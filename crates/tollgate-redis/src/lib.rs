//! Tollgate's counters in Redis, shared by every instance of a service.
//!
//! [`RedisStore`] is a [`Store`](tollgate_core::Store): put it where a `MemoryStore` was, and the same limits are counted
//! together by all instances.
//!
//! 1. **One decision is one call.** All limits of a request, whatever their algorithms and whoever they count, are
//!    decided by one Lua script in one `EVALSHA`: one round trip, and all are charged or none. A server that does not
//!    know the script is sent it, once.
//! 2. **The server tells the time.** The script reads Redis' `TIME` once. No instance's clock plays a part.
//! 3. **Integers only.** The script is the model in `tollgate-core`, function by function, in numbers that Lua counts
//!    exactly. A test runs both side by side on random policies and traces.
//! 4. **Every call ends.** A deadline, 50 ms unless told otherwise, covers waiting for a connection and for the answer.
//! 5. **Nothing is counted twice.** The only call that is repeated is one that the server answered with `NOSCRIPT`,
//!    which it has not run. Any other failure is an error that says whether the charges may have been taken.
//!
//! ```no_run
//! use tollgate_core::{Charge, Key, Name, Quota, Store};
//! use tollgate_redis::RedisStore;
//!
//! # async fn example() -> Result<(), tollgate_redis::RedisStoreError> {
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
//! One string per subject under `PREFIX:1:HASH`: the prefix (`tollgate` unless told otherwise), the version of the stored
//! form, and 22 characters for a keyed 128-bit hash of the key. It holds an instant and, for each limit that is not
//! whole, the limit's number, the numbers of the quota that counted it, and its counters: 74 bytes for three limits, 14
//! more for each distinct microsecond in a sliding log. A sliding log is read and written whole, so one of many
//! thousands of units is slow.
//!
//! Every key expires when its last limit is whole again, so expiry forgets nothing. Peeks and refusals write nothing,
//! unless a limit counts refusals. A quota may change under a limit's name, and instances with the old and the new one
//! may run side by side: each converts what the other has stored.
//!
//! # What the server must allow
//!
//! Redis 5 or later, or Valkey. For an ACL, with the default prefix:
//!
//! ```text
//! ACL SETUSER limiter on >password ~tollgate:1:* +evalsha +eval +get +set +del +time
//! ```
//!
//! The script uses `GET`, `SET`, `DEL` and `TIME` with the caller's rights. Connecting further sends `AUTH` if the URL has
//! a password, `SELECT` if it has a database other than 0 (`+select`), `HELLO` if it asks for RESP3 (`+hello`), and
//! `CLIENT SETINFO`, which may be denied. A pool checks its connections with `UNWATCH` and `PING` (`+unwatch +ping`).
//!
//! # When memory runs out
//!
//! Under `noeviction` the server refuses calls that would write ([`RedisStoreError::Refused`], code `OOM`). Under
//! `volatile-ttl` it forgets those subjects first that would soonest be whole, which is what a limiter wants and what we
//! recommend. The other policies may forget a client who is limited, and so set him free.
//!
//! A replica that is promoted may lack the last writes of the server it replaces: what was charged in them is given back.
//!
//! # TLS and other features of the client
//!
//! Switch them on by depending on `redis` with the features you need; the versions unify.

mod error;
mod keys;
mod link;
mod options;
mod reply;
mod request;
mod script;
mod store;

pub use self::error::{RedisConfigError, RedisStoreError};
pub use self::options::RedisOptions;
pub use self::store::RedisStore;
