//! For tests of Tollgate stores and services: a clock moved by hand, the conformance suite, real Redis servers.

mod block_on;
mod clock;
pub mod conformance;
mod redis_server;

pub use self::block_on::block_on;
pub use self::clock::ManualClock;
pub use self::redis_server::RedisServer;
