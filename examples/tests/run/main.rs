//! Starts every example as a user would, and sends requests like those that the example prints.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod consul;
mod custom_store;
mod example;
mod grpc;
mod hostile;
mod http;
mod limiter;
mod operations;
mod quickstart;
mod redis;
mod shedding;
mod throttle;
