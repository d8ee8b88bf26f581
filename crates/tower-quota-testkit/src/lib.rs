//! Tools for tests of tower-quota stores and services.
//!
//! There are a clock that tests move, a scripted store, the conformance suite, real Redis servers on free ports (a
//! single server or a cluster, with or without TLS, and a group with sentinels), and a proxy that injects faults.

#![forbid(unsafe_code)]

mod block_on;
mod clock;
pub mod conformance;
#[cfg(feature = "differential")]
pub mod differential;
mod fault_proxy;
mod join;
mod model;
mod process;
mod redis_cluster;
mod redis_sentinel;
mod redis_server;
mod resp;
mod scripted_store;
mod slow_link;
mod tls;
mod wait;

pub use self::block_on::block_on;
pub use self::clock::ManualClock;
pub use self::fault_proxy::{Fault, FaultProxy};
pub use self::redis_cluster::{RedisCluster, SlotMove};
pub use self::redis_sentinel::RedisSentinel;
pub use self::redis_server::RedisServer;
pub use self::scripted_store::{
    RecordedCharge, RecordedOperation, ScriptedAnswer, ScriptedError, ScriptedFuture, ScriptedStore,
};
pub use self::slow_link::SlowLink;
pub use self::tls::TlsFiles;
