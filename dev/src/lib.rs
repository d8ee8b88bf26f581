//! Tools for the tests of tower-quota itself. This crate is not published.
//!
//! 1. [`RedisServer`], [`RedisCluster`], [`RedisSentinel`]: real servers on free ports, with or without TLS.
//! 2. [`FaultProxy`]: a proxy that delays, slows, cuts or drops the bytes between a client and a server.
//! 3. [`record_log`]: the log of a test.
//! 4. [`simulation`]: instances behind a network that delays and loses calls, in virtual time.
//!
//! The servers need `redis-server` on the `PATH`. The environment variable `REDIS_SERVER` names another server, such as
//! Valkey or KeyDB, by its path. TLS needs `openssl`.

#![forbid(unsafe_code)]

mod fault_proxy;
mod log;
mod process;
mod redis_cluster;
mod redis_sentinel;
mod redis_server;
mod resp;
pub mod simulation;
mod tls;
mod wait;

pub use self::fault_proxy::{Fault, FaultProxy};
pub use self::log::record_log;
pub use self::redis_cluster::{RedisCluster, SlotMove};
pub use self::redis_sentinel::RedisSentinel;
pub use self::redis_server::RedisServer;
pub use self::tls::TlsFiles;
