//! Starts each example as a user would, and sends the requests that it suggests.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what a test calls may fail like a test"
)]

mod custom_store;
mod example;
mod gateway;
mod grpc;
mod hostile;
mod http;
mod limiter;
mod operations;
mod quickstart;
mod redis;
mod throttle;
