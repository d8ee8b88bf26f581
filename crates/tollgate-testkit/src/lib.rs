//! For tests of Tollgate stores and services: a clock moved by hand, the conformance suite, real Redis servers.

mod clock;
mod redis_server;

pub use self::clock::ManualClock;
pub use self::redis_server::RedisServer;
