//! Mistakes in the configuration that only traffic shows.
//!
//! Each is logged once and counted. With its check turned off, nothing is logged. Apps without mistakes log nothing.
#![cfg(feature = "axum")]
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may panic")]

mod addresses;
mod correct;
mod fixture;
mod limits;
mod log;
mod longest_hold;
mod page;
mod settling;
mod spans;
mod stores;
mod traced;
mod turns_redis;
