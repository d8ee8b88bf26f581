//! For tests of tower-quota stores and services: a clock moved by hand, the conformance suite, real Redis servers on free
//! ports (one alone, a cluster, a group under sentinels, one that speaks TLS), and a network between that fails on
//! request.

#![forbid(unsafe_code)]

mod block_on;
mod clock;
pub mod conformance;
mod fault_proxy;
mod process;
mod redis_cluster;
mod redis_sentinel;
mod redis_server;
mod resp;
mod slow_link;
mod tls;
mod wait;

pub use self::block_on::block_on;
pub use self::clock::ManualClock;
pub use self::fault_proxy::{Fault, FaultProxy};
pub use self::redis_cluster::{RedisCluster, SlotMove};
pub use self::redis_sentinel::RedisSentinel;
pub use self::redis_server::RedisServer;
pub use self::slow_link::SlowLink;
pub use self::tls::TlsFiles;
